"""What Threadline knows how to derive and decide: six wings of folders, pure, all of one inner shape.

A wing imports those before it only: foundation; profile; reach; decide; ask and operate.
"""
