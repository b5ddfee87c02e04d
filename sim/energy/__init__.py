"""Energy of a network: what its routers and links did, priced by a table."""
