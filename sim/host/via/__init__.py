"""VIA on the host: the library (VIPL), the kernel agent, connections between the agents of two nodes, admission.

- `errors`: codes of calls, of descriptors' ends and of asynchronous errors.
- `attributes`: addresses, attributes, states.
- `descriptor`, `queue`: descriptors, and the work queues of a VI.
- `completion_queue`: a completion queue, with the ends that the agent tells.
- `vi`: a VI and its states.
- `messages`, `link`: messages of agents, and how they come across.
- `connect`: connections.
- `admission`: promises of a card to VIs with a rate.
- `nic`: an open NIC: what a process holds.
- `agent`: the kernel agent of a node.
- `vipl`: the calls.
"""
