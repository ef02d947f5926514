"""The vocabulary: the pure values and ports that every other room uses; read it in fifteen minutes."""
