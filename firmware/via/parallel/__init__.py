"""The parallel design of VIA: an event loop over tasks of many messages (nagar-thesis-2001 5.3.2, 5.3.3)."""
