"""The Python API: a store in this process, or a server far away, with the same operations under the same names."""
