"""The main loop's interface (`native/main.cpp`) for Python, by ctypes: Python runs inside its process.

The module can be imported anywhere, and is of use only there. Reading a signal through its address takes 0.1
microseconds, through VPI a few.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "LOG_RANGES",
    "Signal",
    "attach_bells",
    "attach_commands",
    "attach_departures",
    "attach_events",
    "attach_lists",
    "attach_memory",
    "attach_wakes",
    "attach_wanted",
    "bare_seconds",
    "called",
    "check_quiet",
    "cycle",
    "evaluated",
    "later",
    "peak_memory_bytes",
    "play",
    "signal",
    "skip",
    "skipped",
    "use_threads",
    "watch",
]

LOG_RANGES = 256
"""Ranges in the log of watched writes (kLogRanges of hostmem.cpp)."""

_TYPES = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


@cache
def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A C function of the simulator's executable."""
    function = getattr(ctypes.CDLL(None), name)
    function.restype, function.argtypes = result, list(arguments)
    return function


def cycle() -> int:
    """Rising clock edges so far."""
    return int(_function("lanikai_cycle", ctypes.c_uint64)())


def skip(
    *,
    nodes: int,
    settle_cycles: int,
    num: int,
    den: int,
    bits: int,
    reach_ticks: int,
    round_cycles: int,
    horizon_cycles: int,
) -> None:
    """Let time pass over cycles in which nothing happens (`native/skip.h`), in a cluster of `nodes` cards.

    - `settle_cycles`: quiet cycles after which no block has a pause of its own any more.
    - `num`, `den`, `bits`: a tick of the cards' clocks, of `bits`, is `num` / `den` cycles.
    - `reach_ticks`: most ticks passed over at once.
    - `round_cycles`: the cycles passed over are a multiple of it.
    - `horizon_cycles`: none is passed over from then on.

    Raises KeyError if the design has no ports for it.
    """
    start = _function(
        "lanikai_skip",
        ctypes.c_int,
        ctypes.c_uint32,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_uint32,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_uint64,
    )
    if not start(nodes, settle_cycles, num, den, bits, reach_ticks, round_cycles, horizon_cycles):
        raise KeyError("the design has no ports for passing over quiet cycles")


def skipped() -> int:
    """Cycles that time has passed over so far."""
    return int(_function("lanikai_skipped", ctypes.c_uint64)())


def bare_seconds(cycles: int) -> float:
    """Run `cycles` of the model alone, without Python, VPI or simulated time. Returns the seconds of processor time it
    took. Coroutines must not be waiting for the design meanwhile."""
    return int(_function("lanikai_bare", ctypes.c_uint64, ctypes.c_uint64)(cycles)) / 1e9


def check_quiet() -> None:
    """Have every instance that is passed over evaluated all the same (`native/blocks.h`).

    The simulation ends with an error if a register of such an instance changes. Raises KeyError if the design is not
    composed.
    """
    if not _function("lanikai_check_quiet", ctypes.c_int)():
        raise KeyError("the design is not composed of blocks that could be passed over")


def evaluated() -> tuple[int, int]:
    """Evaluations of the instances of a composed design so far, and their number without passing over any.

    Both are zero if the design is not composed.
    """
    total = ctypes.c_uint64()
    count = _function("lanikai_evaluated", ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))
    return int(count(ctypes.byref(total))), int(total.value)


def use_threads(*, everyone: bool) -> int:
    """Have all threads evaluate instances from the next cycle on, or the main one alone. Returns how many there are."""
    return int(_function("lanikai_use_threads", ctypes.c_uint, ctypes.c_int)(everyone))


def peak_memory_bytes() -> int:
    """Most memory that this process has had resident. (The figure of `getrusage` begins with the parent's.)"""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


class Signal:
    """A public variable of the design, `bits` wide, in `size` bytes at `address`. Read before the edge, write after it
    (`sim/inside/clock.py`)."""

    def __init__(self, address: int, bits: int, size: int, owner: int = 0) -> None:
        self.address, self.bits, self.size, self.owner = address, bits, size, owner
        self._mask = (1 << bits) - 1
        self._narrow: Any = _TYPES[size].from_address(address) if bits <= 64 else None
        self._wide = (ctypes.c_uint8 * size).from_address(address)
        self._prepare = _function("lanikai_prepare", None, ctypes.c_uint32) if owner else None
        self._poke = _function("lanikai_poke", None, ctypes.c_uint32)

    def get(self) -> int:
        """The value, unsigned."""
        if self._narrow is not None:
            return int(self._narrow.value)
        return int.from_bytes(self._wide, "little")

    def set(self, value: int) -> None:
        """Write an input of the top module, or of an instance outside of it. Raises ValueError if the value does not
        fit."""
        if not 0 <= value <= self._mask:
            raise ValueError(f"value {value:#x} does not fit {self.bits} bits")
        if self._prepare is not None:
            self._prepare(self.owner)
        if self._narrow is not None:
            self._narrow.value = value
        else:
            ctypes.memmove(self._wide, value.to_bytes(self.size, "little"), self.size)
        self._poke(self.owner)


def signal(name: str, scope: str = "TOP") -> Signal:
    """The variable `name` of an instance.

    `scope`: "TOP" for the top module's ports, else instance names joined by dots, the top module's name first. The
    instances of a composed design are scopes, too. What they show is that of the present cycle, until time goes on.
    Raises KeyError if the design does not list the variable as public.
    """
    find = _function(
        "lanikai_signal",
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        *[ctypes.POINTER(ctypes.c_uint32)] * 3,
    )
    bits, size, owner = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_uint32()
    address = find(scope.encode(), name.encode(), ctypes.byref(bits), ctypes.byref(size), ctypes.byref(owner))
    if not address:
        raise KeyError(f"no public signal {scope}.{name}")
    return Signal(address, bits.value, size.value, owner.value)


def called(function: Callable[[], None]) -> Any:
    """`function` for the main loop to call, which raises nothing. The caller keeps what is returned alive."""
    return ctypes.CFUNCTYPE(None)(function)


def attach_wakes(
    serve: Any, entries: np.ndarray, armed: np.ndarray, told: np.ndarray, order: np.ndarray
) -> None:
    """Give the simulation its ring of events (`native/wakes.h`). The caller keeps the arrays alive.

    - `serve`: what `called` has made; it is called when there is something in the ring.
    - `entries`: a 32-bit word for each number of an event.
    - `armed`: a 64-bit word for each: 0, or the place in the order of arming.
    - `told`: a 32-bit word, the number of entries in the ring.
    - `order`: a 64-bit word, the last place in the order of arming.
    """
    pointer = ctypes.c_void_p
    attach = _function("lanikai_wakes", None, *[pointer] * 4, ctypes.c_uint32, pointer)
    arrays = (entries, armed, told)
    attach(ctypes.cast(serve, pointer), *(one.ctypes.data for one in arrays), len(entries), order.ctypes.data)


def later() -> Callable[[int, int], None]:
    """The function that raises an event which is armed: `later(cycles, number)`, in the drive phase `cycles` (at least
    1) from now."""
    function: Callable[[int, int], None] = _function("lanikai_later", None, ctypes.c_uint64, ctypes.c_uint32)
    return function


def attach_lists(
    command: Signal, answer: Signal, words: np.ndarray, control: np.ndarray, event: int
) -> tuple[Callable[[int, int, int, int, int], int], int]:
    """A processor's port on which the main loop carries out lists of accesses (`native/lists.h`).

    - `command`, `answer`: the mailbox's ports, of up to 64 bits.
    - `words`, `control`: 32-bit words, as there; the caller keeps the arrays alive.
    - `event`: number of the event that a list has ended.

    Returns the function that begins a list, and the port's number. The function takes the port, the cycles until then,
    the program's address, its records, and whether there are marks. It arms the event, or gives 1 if the list has ended
    already.
    """
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    attach = _function("lanikai_lists", number, *[pointer] * 4, number, number)
    arrays = (one.ctypes.data for one in (words, control))
    port = attach(command.address, answer.address, *arrays, command.owner, event)
    start = _function(
        "lanikai_lists_start", ctypes.c_int, number, ctypes.c_uint64, pointer, number, ctypes.c_int
    )
    return start, int(port)


def watch(one: Signal, number: int) -> None:
    """Raise event `number` (`native/wakes.h`) whenever the one-bit register `one` changes. Raises ValueError for a
    wider signal."""
    if one.bits != 1:
        raise ValueError(f"a signal of {one.bits} bits: only one-bit registers are watched")
    look = _function("lanikai_watch", None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
    look(one.address, one.owner, number)


def play(
    request: Signal,
    response: Signal | None,
    requests: np.ndarray,
    *,
    turns: int,
    answers: np.ndarray,
    answered: np.ndarray,
) -> None:
    """Make `requests` on a set-up port, one in each cycle from this one on, then zeros (`native/player.h`).

    In `turns` cycles the answers go to `answers`, without their valid bits, and their number to `answered[0]`. Arrays
    are of 64-bit words; the caller keeps them alive for so long.
    """
    pointer, word, size = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
    start = _function(
        "lanikai_play", None, pointer, size, pointer, size, pointer, word, word, pointer, pointer
    )
    start(
        request.address,
        request.size,
        response.address if response else None,
        response.size if response else 0,
        requests.ctypes.data,
        len(requests),
        turns,
        answers.ctypes.data,
        answered.ctypes.data,
    )


def attach_memory(node: int, memory: np.ndarray, watched: np.ndarray, log: np.ndarray) -> None:
    """Give node `node` of the simulation (`native/hostmem.cpp`) the bytes of `memory` as its host memory.

    - `watched`: a byte for each 32-bit word, not zero where writes are logged.
    - `log`: 1 + 2 * `LOG_RANGES` 32-bit words: the number of ranges, then pairs of first word and the word after the
      last.

    The caller keeps the arrays alive.
    """
    pointer = ctypes.c_void_p
    attach = _function(
        "lanikai_memory_attach", None, ctypes.c_uint32, pointer, ctypes.c_uint64, pointer, pointer
    )
    attach(node, memory.ctypes.data, memory.nbytes, watched.ctypes.data, log.ctypes.data)


def attach_bells(bells: np.ndarray) -> None:
    """Have the simulation look at a byte for each node (`native/bells.h`): one that is set wakes the node in the next
    cycle. A multiple of 8 of them; the caller keeps the array alive."""
    attach = _function("lanikai_bells", None, ctypes.c_void_p, ctypes.c_uint32)
    attach(bells.ctypes.data, len(bells))


def attach_commands(node: int, entries: np.ndarray, control: np.ndarray) -> None:
    """Give node `node` (`native/messages.cpp`) its ring of commands. The caller keeps the arrays alive.

    - `entries`: two 64-bit words each.
    - `control`: entries put in, entries taken, not zero while room is waited for.
    """
    _attach_ring("lanikai_messages_commands", (ctypes.c_uint32,), (node,), entries, control)


def attach_departures(node: int, entries: np.ndarray, control: np.ndarray) -> None:
    """Have the heads of node `node`'s messages noted as they leave (`native/messages.cpp`). The caller keeps the arrays
    alive.

    - `entries`: 64 bits each: the VL, and below it 32 bits of the cycle.
    - `control`: entries put in, nothing, heads for which there was no entry.
    """
    _attach_ring("lanikai_messages_departures", (ctypes.c_uint32,), (node,), entries, control)


def attach_events(entries: np.ndarray, control: np.ndarray) -> None:
    """Give the simulation its ring of all nodes' events (`native/messages.cpp`). The caller keeps the arrays alive.

    - `entries`: two 64-bit words each.
    - `control`: entries put in, entries taken, events lost.
    """
    _attach_ring("lanikai_messages_events", (), (), entries, control)


def attach_wanted(wanted: np.ndarray) -> None:
    """Have the simulation tell only of those events whose byte is set (`native/messages.cpp`).

    `wanted`: a byte for each event, by the low bits of its entry; a power of two of them. It is written between cycles.
    The caller keeps the array alive.
    """
    attach = _function("lanikai_messages_wanted", None, ctypes.c_void_p, ctypes.c_uint64)
    attach(wanted.ctypes.data, len(wanted))


def _attach_ring(
    name: str, types: tuple[Any, ...], values: tuple[int, ...], entries: np.ndarray, control: np.ndarray
) -> None:
    pointer = ctypes.c_void_p
    attach = _function(name, None, *types, pointer, ctypes.c_uint64, pointer)
    attach(*values, entries.ctypes.data, len(entries), control.ctypes.data)
