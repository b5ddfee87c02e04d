"""The five-stage pipelined wormhole router: one file a pipeline stage, and the router that joins them."""
