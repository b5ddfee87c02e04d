"""Experiments of chun-1998: Active Messages II over virtual networks, on workstations with LANai 4.1 cards."""
