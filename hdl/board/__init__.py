"""Blocks that stand on an FPGA board around the others: a serial line, registers behind it, clocks, whole designs.

- `uart`: bytes on a serial line.
- `frames`, `bridge`: a request port behind the line, frames with a CRC.
- `loopback`: a router between traffic nodes.
- `node/`: a card with a soft core, and a router that sends its messages back to it.
"""
