"""A plain model of networks of routers, and what holds the RTL against it."""
