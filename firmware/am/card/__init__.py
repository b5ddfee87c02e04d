"""The card below the program of virtual networks: its engines, and lists of accesses to it.

- `engines`: host DMA, send and receive engine, each with what waits for it.
- `script`: the accesses of one pass of the program.
"""
