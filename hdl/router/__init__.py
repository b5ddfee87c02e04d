"""The five-stage pipelined wormhole router: one file a pipeline stage, and the router that joins them.

- Stages: `receive` (1), `route` (2), `vl_allocation` (3), `crossbar` (4), `transmit` (5).
- The whole: `router`.
- Shared parts: `vl_buffer`, `vl_pointers`, `credits`, `allocators`, `flit`.
"""
