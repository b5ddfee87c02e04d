"""Synthesizable RTL of the interconnect, in Amaranth. Nothing here knows of simulation."""
