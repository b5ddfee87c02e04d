"""Experiments on VIA: scalability and quality of service (nagar-thesis-2001 4.3 and 5.4).

- `metrics`: jitter and latency, as the thesis defines them.
- `workloads`: messages of channels with a constant rate, of films, and of best effort.
"""
