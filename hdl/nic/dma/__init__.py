"""DMA engines: host, network send, network receive, and the AXI blocks between them and the bus."""
