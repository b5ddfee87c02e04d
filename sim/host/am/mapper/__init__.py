"""The mapper of virtual networks: it finds an unknown network of anonymous switches by probes, and gives out routes.

- `words`: routes as lists of ports, and their limits.
- `prober`: the protocol by which probes are sent and answered.
- `network_map`: a map, and when two are the same.
- `facts`, `search`, `kinds`, `discover`: how a map is found.
- `routes`: routes that cannot deadlock, and how old ones give way to new ones.
- `wire`, `agent`: packets of mappers, and the agent of every node, which is a `Prober`.
- `driver_port`: the raw packets of the segment driver.
- `config`, `mapper`: the mapper, which is elected among the candidates.
"""
