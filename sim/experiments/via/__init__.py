"""Experiments on VIA: scalability and quality of service (nagar-thesis-2001 4.3 and 5.4).

- `metrics`: jitter and latency, as the thesis defines them.
- `workloads`: messages of channels with a constant rate, of films, and of best effort.
- `cards`: the three designs of chapter 5, and clusters of them.
- `channels`: the base of the experiments on channels with a rate.
- `cbr`, `qos_load`, `vbr`, `hns`, `schedulers`: those experiments.
- `scalability`, `scalability_claims`: the ladder of chapter 4.
"""
