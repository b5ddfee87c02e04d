"""Boards that a block can be placed for: pins and devices, a folder each. Nothing here knows a tool."""
