"""Drivers, bus models and plain Python models of RTL blocks."""
