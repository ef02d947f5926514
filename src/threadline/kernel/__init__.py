"""The vocabulary: pure values and ports that every other room speaks in; read it in fifteen minutes."""
