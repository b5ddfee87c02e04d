"""Arbiters: one file each, one registry."""
