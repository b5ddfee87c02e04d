"""Native events for Python: one VPI wake-up for all those of a cycle (`native/wakes.h`).

The main loop, or a block of a composed simulation, raises an event by its number. Python is woken once, in the drive
phase of that cycle, and calls whoever waits for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb._event_loop
import numpy as np
from cocotb.triggers import ValueChange

from . import native_api

__all__ = ["NativeEvent", "Wakes"]

Function = Callable[[], None]


class NativeEvent:
    """An event that happens outside of Python, with its `number`. `Wakes.event` and `Wakes.change` make them."""

    def __init__(self, wakes: Wakes, number: int) -> None:
        self._wakes = wakes
        self.number = number
        self._functions: list[Function] = []

    def call(self, function: Function) -> None:
        """Call `function` once, in the drive phase of the cycle in which the event happens next.

        Several functions may wait for it: they are called in the order of asking.
        """
        self._functions.append(function)
        if len(self._functions) == 1:
            self._wakes.arm(self.number)

    def cancel(self) -> None:
        """Nobody waits any more."""
        self._functions.clear()
        self._wakes.disarm(self.number)

    def happened(self) -> None:
        """Call those who wait."""
        functions, self._functions = self._functions, []
        for function in functions:
            function()


class Wakes:
    """The native events of a simulation whose top module has the one-bit input `handle` (a cocotb handle, and `bit`
    its `native_api.Signal`) for nothing but this.

    Events of one cycle are called in the order in which they were first asked for. What one brings about among
    coroutines in that cycle is over before the next is called, as if each had woken Python by itself. The ring has a
    place for each event, so none is lost.
    """

    def __init__(self, handle: Any, bit: native_api.Signal) -> None:
        self._handle, self._bit = handle, bit
        self._events: list[NativeEvent] = []
        self._free: list[NativeEvent] = []
        self._later = native_api.later()
        self._order = np.zeros(1, np.uint64)
        self._told = np.zeros(1, np.uint32)
        self._armed = np.zeros(0, np.uint64)
        self._entries = np.zeros(0, np.uint32)
        self._wait()

    def event(self) -> NativeEvent:
        """A new event, raised by its number."""
        number = len(self._events)
        if number == len(self._armed):
            # Between two wake-ups the ring is empty: only what is armed has to be kept.
            self._armed = np.concatenate([self._armed, np.zeros(max(64, number), np.uint64)])
            self._entries = np.zeros(len(self._armed), np.uint32)
            native_api.attach_wakes(self._bit, self._entries, self._armed, self._told, self._order)
        self._events.append(NativeEvent(self, number))
        return self._events[-1]

    def change(self, signal: native_api.Signal) -> NativeEvent:
        """The event that the one-bit register `signal` has changed. Raises ValueError for a wider one."""
        event = self.event()
        native_api.watch(signal, event.number)
        return event

    def arm(self, number: int) -> None:
        """Have event `number` told when it happens next."""
        self._order[0] += 1
        self._armed[number] = self._order[0]

    def disarm(self, number: int) -> None:
        """Have event `number` not told any more."""
        self._armed[number] = 0

    def call_later(self, cycles: int, function: Function) -> None:
        """Call `function` in the drive phase `cycles` (at least 1) later, behind all events of that cycle that are
        none of time. Those of time are called in the order of asking. Raises ValueError for less than 1."""
        if cycles < 1:
            raise ValueError(f"cycles = {cycles}: at least 1")
        event = self._free.pop() if self._free else self.event()

        def over() -> None:
            self._free.append(event)
            function()

        event.call(over)
        self._later(cycles, event.number)

    def _wait(self) -> None:
        ValueChange(self._handle)._register(self._serve)

    def _serve(self) -> None:
        self._wait()
        count = int(self._told[0])
        numbers = self._entries[:count].tolist()
        self._told[0] = 0
        for place, number in enumerate(numbers, 1):
            self._events[number].happened()
            if place < count:
                cocotb._event_loop._inst.run()
