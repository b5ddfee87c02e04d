"""The mapper of virtual networks: it finds an unknown network of anonymous switches by probes, and gives out routes.

- `words`: routes as lists of ports, and their limits.
- `prober`: the protocol by which probes are sent and answered.
- `network_map`: a map, and when two are the same.
- `facts`, `search`, `kinds`, `discover`: how a map is found.
- `routes`: routes that cannot deadlock, and how old ones give way to new ones.
"""
