"""Monitors: components that watch an interface and tell which of its rules is broken, and when.

The same monitor serves a proof (`Assert` that nothing is broken), a debug build (`debug.py`), and blocks of others.
A new one is a file with a subclass of `Monitor`, and a line in `MONITORS`.
"""

from __future__ import annotations

from typing import Any

from amaranth.lib.stream import Signature as StreamSignature

from ..axi import Axi4LiteSignature, Axi4Signature
from ..link import LinkSignature
from ..register_port import ProcessorSignature
from .axi4 import Axi4Monitor
from .axi4_lite import Axi4LiteMonitor
from .link import LinkMonitor
from .monitor import Monitor, Rule, Side
from .register_port import RegisterPortMonitor
from .stream import StreamMonitor

__all__ = [
    "MONITORS",
    "Axi4LiteMonitor",
    "Axi4Monitor",
    "LinkMonitor",
    "Monitor",
    "RegisterPortMonitor",
    "Rule",
    "Side",
    "StreamMonitor",
]

MONITORS: dict[type[Any], type[Monitor]] = {
    StreamSignature: StreamMonitor,
    LinkSignature: LinkMonitor,
    Axi4Signature: Axi4Monitor,
    Axi4LiteSignature: Axi4LiteMonitor,
    ProcessorSignature: RegisterPortMonitor,
}
"""The monitor of each kind of interface, by its signature's class."""
