"""Experiments on the power that a network takes."""
