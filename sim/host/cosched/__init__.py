"""Communication-driven coscheduling: parallel programs whose processes share hosts, and strategies that schedule them.

`docs/coscheduling.md` is the guide. Hosts are those of `lanikai.sim.host.cpu`. The network and its cards are a model of
times here, and no RTL.
"""
