"""Keys: who may record and who may read, given and taken away by those who hold the admin scope.

The secret of a key is told once, when it is made; what is kept is its hash.
"""
