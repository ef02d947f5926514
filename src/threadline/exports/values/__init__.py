"""What is kept beside the store of values of people, such as features: a question looks at few of them again."""
