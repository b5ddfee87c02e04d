"""Communicators and their calls, by kind."""
