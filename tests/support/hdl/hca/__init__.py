"""Plain models and drivers for tests of the adapter."""
