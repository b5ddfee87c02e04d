"""Coroutines that run in a simulator, and stand-ins for parts of `sim/`."""
