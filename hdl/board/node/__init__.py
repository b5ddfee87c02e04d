"""The design `node`: a card, a router, host memory, and a soft core that runs the card's program.

- `host_memory`, `host_window`: what a host computer would be, behind the serial line.
- `core`, `program`, `program.asm`: the soft core, and what it does.
- `node`: all of it, joined.
"""
