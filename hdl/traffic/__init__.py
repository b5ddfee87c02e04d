"""Traffic sources, sinks and measurement in RTL: load that Python sets up once and reads out once.

- `config`: configuration.
- `ports`: set-up port, broadcast signals, address map, declared registers.
- `packet`: the synthetic packet.
- `random`: random numbers, exponential draws.
- `pattern`: destinations.
- `generator`: the births of packets.
- `sender`: source queues, link.
- `source`: generator and sender of a node.
- `checker`, `statistics`, `credit_return`, `sink`: the receiving side of a node.
- `node`: source, sink and port of a node.
- `measurement`: warm-up, window, drain, verdict.
"""
