"""Looks at a traffic network while it is measured."""
