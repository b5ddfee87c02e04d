"""Native events for Python: one wake-up for all those of a cycle (`native/wakes.h`).

The main loop, or a block of a composed simulation, raises an event by its number. It calls Python once, in the drive
phase of that cycle, which calls whoever waits for each of them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

import cocotb._event_loop
import numpy as np
from cocotb import simulator
from cocotb._gpi_triggers import GPITrigger

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

    def always(self, function: Function) -> None:
        """Call `function` whenever the event happens; the simulation arms it itself."""
        self._wakes.always(self.number, function)

    def happened(self) -> None:
        """Call those who wait."""
        functions, self._functions = self._functions, []
        for function in functions:
            function()


class _Call(GPITrigger):
    """A call by the main loop, for cocotb: `function` is called as by a trigger of VPI's that fires."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._do_callbacks = function  # type: ignore[method-assign]

    def _prime(self) -> None:
        """Nothing has to be asked for."""

    def call(self) -> None:
        """Call the function, then what it has scheduled. As in VPI's calls an exception ends the simulation at once."""
        try:
            self._react()
        except BaseException:
            traceback.print_exc()
            simulator.stop_simulator()


class Wakes:
    """The native events of a simulation. There is one such object.

    Events of one cycle are called in the order in which they were first asked for. What one brings about among
    coroutines in that cycle is over before the next is called, as if each had woken Python by itself. The ring has a
    place for each event, so none is lost.
    """

    def __init__(self) -> None:
        self._events: list[NativeEvent] = []
        self._functions: list[Function] = []  # of each event, by its number
        self._free: list[NativeEvent] = []
        self._later = native_api.later()
        # Items of memory views cost a third of those of arrays.
        self._order = np.zeros(1, np.uint64).data
        self._told = np.zeros(1, np.uint32).data
        self._armed = np.zeros(0, np.uint64).data
        self._entries = np.zeros(0, np.uint32).data
        self._called = native_api.called(_Call(self._serve).call)

    def event(self) -> NativeEvent:
        """A new event, raised by its number."""
        number = len(self._events)
        if number == len(self._armed):
            # Between two wake-ups the ring is empty: only what is armed has to be kept.
            armed = np.zeros(number + max(64, number), np.uint64)
            armed[:number] = self._armed
            self._armed, self._entries = armed.data, np.zeros(len(armed), np.uint32).data
            arrays = (np.asarray(one) for one in (self._entries, self._armed, self._told, self._order))
            native_api.attach_wakes(self._called, *arrays)
        event = NativeEvent(self, number)
        self._events.append(event)
        self._functions.append(event.happened)
        return event

    def change(self, signal: native_api.Signal) -> NativeEvent:
        """The event that the one-bit register `signal` has changed. Raises ValueError for a wider one."""
        event = self.event()
        native_api.watch(signal, event.number)
        return event

    def arm(self, number: int) -> None:
        """Have event `number` told when it happens next."""
        self._order[0] = order = self._order[0] + 1
        self._armed[number] = order

    def always(self, number: int, function: Function) -> None:
        """Call `function` alone whenever event `number` happens."""
        self._functions[number] = function

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

    def _serve(self) -> None:
        left = self._told[0]
        numbers = self._entries[:left].tolist()
        self._told[0] = 0
        for number in numbers:
            self._functions[number]()
            left -= 1
            if left:
                cocotb._event_loop._inst.run()
