"""Mutants of mechanisms, each a change that is made inside the simulator's process before a point runs there.

`MutantSimulator` runs an experiment's points with one of them. Nothing outside of the tests knows of it: a point's
coroutine is run by `run_point`, which makes the change and runs the point's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanikai.sim.experiments.backend import Job, Measured, Progress, Simulator
from lanikai.sim.session import load_coroutine

__all__ = ["MUTANTS", "MutantSimulator", "mutant", "run_point"]

MUTANTS: dict[str, Callable[[], None]] = {}
"""Every mutant, by name: makes its change."""


def mutant(change: Callable[[], None]) -> Callable[[], None]:
    """Register a mutant under its function's name, with spaces."""
    MUTANTS[change.__name__.replace("_", " ")] = change
    return change


@dataclass(frozen=True)
class MutantSimulator(Simulator):
    """The simulator, with the mutant `name` in it; None: as it is."""

    name: str | None = None

    def run(self, model: Any, job: Job, progress: Progress) -> Measured:
        """Run the point in a simulator process, mutated."""
        spec = {"mutant": self.name, "entry": job.entry, "spec": dict(job.spec)}
        if self.name is not None:
            job = replace(job, entry=f"{__name__}:run_point", spec=spec)
        return super().run(model, job, progress)


async def run_point(system: Any, spec: Mapping[str, Any]) -> Any:
    """Inside the simulator: make the change, run the point."""
    MUTANTS[spec["mutant"]]()
    return await load_coroutine(spec["entry"])(system, spec["spec"])


def _costs(**cycles: int) -> None:
    from lanikai.firmware.costs import GM_COSTS

    assert cycles.keys() <= GM_COSTS.table.keys()
    GM_COSTS.table.update(cycles)


def _idts(change: Callable[[int], int]) -> None:
    """IDTs reach the card as `change` of what they should be."""
    from lanikai.firmware.gm.sdma import Sdma

    right = Sdma.set_idt

    async def set_idt(self: Any, flow: Any, ticks: int) -> None:
        await right(self, flow, change(ticks))

    Sdma.set_idt = set_idt


@mutant
def idts_are_ignored() -> None:
    """No flow is regulated."""
    _idts(lambda ticks: 0)


@mutant
def idts_are_2_ticks_long() -> None:
    """The rate control unit is told 2 ticks too many."""
    _idts(lambda ticks: ticks + 2 if ticks else 0)


@mutant
def no_change_of_direction() -> None:
    """A change between sending and receiving costs nothing."""
    _costs(packet_turn=0)


@mutant
def half_a_change_of_direction() -> None:
    """It costs half of what it does."""
    _costs(packet_turn=122)


@mutant
def no_change_of_connection() -> None:
    """A change of connection costs nothing."""
    _costs(sdma_turn=0)


@mutant
def a_packet_is_made_in_half_the_time() -> None:
    """The firmware takes half of the time to make a packet."""
    _costs(sdma_packet=144)


@mutant
def receiving_is_slow() -> None:
    """The firmware takes much longer to receive a packet."""
    _costs(recv_data=700)


@mutant
def senders_die() -> None:
    """Every sender stops for good after some messages."""
    from lanikai.sim.experiments.gm_flows import Sender

    right = Sender.start

    def start(self: Any) -> None:
        send, left = self._port.send, [6]

        async def send_some(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                await self._cluster.clock.flag().wait()
            return await send(*arguments, **options)

        self._port.send = send_some
        right(self)

    Sender.start = start
