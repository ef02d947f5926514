"""GraphQL: the operations that read people, as one graph; needs the extra ``graphql``."""
