"""Routing functions that leave packets a choice of ways: at each router, or where a packet enters."""
