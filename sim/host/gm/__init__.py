"""The GM library of a host program."""
