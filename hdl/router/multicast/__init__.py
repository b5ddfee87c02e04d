"""Multicast: one packet that goes to a set of nodes, copied by the routers where its ways part."""
