"""Measures simulation speed (`lanikai bench`)."""
