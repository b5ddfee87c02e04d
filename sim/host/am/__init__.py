"""Virtual networks on the host: the mapper, and what programs and drivers use (chun-1998)."""
