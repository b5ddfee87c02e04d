"""The five-stage pipelined wormhole router: one file a pipeline stage, and the router that joins them.

`receive` (1), `route` (2), `vl_allocation` (3), `crossbar` (4), `transmit` (5), `router`; shared parts:
`vl_buffer`, `vl_pointers`, `credits`, `allocators`, `flit`.
"""
