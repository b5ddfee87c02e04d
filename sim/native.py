"""What the main loop (`native/main.cpp`) offers to Python, by ctypes: Python runs inside the simulator's
process.

Only importable there. Reading a signal through its address takes 0.1 microseconds, through VPI a few.
"""

from __future__ import annotations

import ctypes

import numpy as np

__all__ = ["LOG_RANGES", "Signal", "attach_memory", "cycle", "signal"]

LOG_RANGES = 256
"""Ranges in the log of watched writes (kLogRanges of hostmem.cpp)."""

_process = ctypes.CDLL(None)
cycle = _process.lanikai_cycle
"""Rising clock edges so far."""
cycle.restype = ctypes.c_uint64
cycle.argtypes = []
_poke = _process.lanikai_poke
_poke.restype = None
_poke.argtypes = []
_find = _process.lanikai_signal
_find.restype = ctypes.c_void_p
_find.argtypes = [
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32),
]

_TYPES = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


class Signal:
    """A public port of the top module. `bits` wide. Read before the edge, write after it (`sim/clock.py`)."""

    def __init__(self, address: int, bits: int, size: int) -> None:
        self.bits = bits
        self._mask = (1 << bits) - 1
        self._size = size
        self._narrow = _TYPES[size].from_address(address) if bits <= 64 else None
        self._wide = (ctypes.c_uint8 * size).from_address(address)

    def get(self) -> int:
        """The value, unsigned."""
        if self._narrow is not None:
            return self._narrow.value
        return int.from_bytes(self._wide, "little")

    def set(self, value: int) -> None:
        """Write an input of the top module. Raises ValueError if the value does not fit."""
        if not 0 <= value <= self._mask:
            raise ValueError(f"value {value:#x} does not fit {self.bits} bits")
        if self._narrow is not None:
            self._narrow.value = value
        else:
            self._wide[:] = value.to_bytes(self._size, "little")
        _poke()


def signal(name: str, scope: str = "TOP") -> Signal:
    """The port `name` of the top module. Raises KeyError if the design does not list it as public."""
    bits, size = ctypes.c_uint32(), ctypes.c_uint32()
    address = _find(scope.encode(), name.encode(), ctypes.byref(bits), ctypes.byref(size))
    if not address:
        raise KeyError(f"no public signal {scope}.{name}")
    return Signal(address, bits.value, size.value)


def attach_memory(node: int, memory: np.ndarray, watched: np.ndarray, log: np.ndarray) -> None:
    """Give node `node` of the simulation (`native/hostmem.cpp`) the bytes of `memory` as its host memory.

    `watched`: a byte a 32-bit word, not zero where writes are logged; `log`: 1 + 2 * `LOG_RANGES` 32-bit
    words, the number of ranges and then pairs of first word and the word after the last. The caller keeps
    them alive.
    """
    attach = _process.lanikai_memory_attach
    attach.restype = None
    pointer = ctypes.c_void_p
    attach.argtypes = [ctypes.c_uint32, pointer, ctypes.c_uint64, pointer, pointer]
    attach(node, memory.ctypes.data, memory.nbytes, watched.ctypes.data, log.ctypes.data)
