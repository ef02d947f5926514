"""The Model Context Protocol: fifteen tools over the operations, for agents. Begin with `protocol.py`."""
