"""Host software of the host channel adapter: driver, queue pairs, completion queues (yum-2006 3.2).

- `driver`: sets adapters up, and hands out queue pairs, completion queues and regions to processes.
- `queue_pair`, `completion_queue`: the parts of them that processes use, without the driver.
- `control`: control packets of the host.
- `port`: the parts of a host that all this stands on.
- `credit`: how many messages a process may have at the adapter.
"""
