"""The bandwidth resource manager (gulati-thesis-2001 3.3, 4.3): a manager on each node, one of them master.

- `capacity`, `ledger`, `sharing`: what a cluster can carry, who holds what, how best-effort flows share the rest;
  pure, without simulation.
- `wire`, `rpc`: messages, and calls over a network that may lose them.
- `master`, `local`: the manager processes; `client`: the interface for a host program.
"""
