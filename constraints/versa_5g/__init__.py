"""ECP5-5G Versa."""
