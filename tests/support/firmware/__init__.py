"""A card and a cluster in Python, for firmware without RTL."""
