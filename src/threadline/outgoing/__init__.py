"""Calls over HTTP: nothing else in the product opens a connection to another system's web address.

Which form it is depends on who chose the address: `public_call.py` calls what users of the product have written, and
refuses private addresses; `connections.py` calls a service that the settings name, over connections that stay open;
`fetching.py` reads a document that the settings name, behind redirects and proxies too.
"""
