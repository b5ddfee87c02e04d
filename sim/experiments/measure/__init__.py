"""Measurements that several experiments share: flows over GM and MPI, traffic on networks."""
