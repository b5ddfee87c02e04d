"""Mutants of coscheduling. All may be made again in the same process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []

_RIGHT: dict[str, Any] = {}
"""Functions of the product that a mutant calls, by class."""


@mutant
def boosts_do_nothing(spec: Mapping[str, Any]) -> None:
    """No process is ever boosted."""
    from lanikai.sim.host.cpu.time_sharing import TimeSharing

    TimeSharing.boost = lambda self, process: None


@mutant
def all_wait_busily(spec: Mapping[str, Any]) -> None:
    """No process sleeps or yields: it spins until its message is there."""
    from lanikai.sim.host.cosched.waiting import BusyWait, SpinBlock, SpinYield

    SpinBlock.wait = BusyWait.wait
    SpinYield.wait = BusyWait.wait


@mutant
def nobody_sends(spec: Mapping[str, Any]) -> None:
    """Jobs compute, and send nothing."""
    from lanikai.sim.host.cosched.rank import Rank

    async def nothing(self: Any, *arguments: Any, **named: Any) -> bytes:
        return b""

    async def same(self: Any, value: float) -> float:
        return value

    Rank.Send = Rank.Recv = Rank.Barrier = nothing
    Rank.Allreduce = same


@mutant
def the_first_job_has_the_nodes(spec: Mapping[str, Any]) -> None:
    """Processes of the first job are raised every second, and no others."""
    from lanikai.sim.host.cpu.time_sharing import TimeSharing

    def raise_first(self: Any) -> None:
        for process in self.host.processes:
            if process.job == 0:
                self.boost(process)
            else:
                self.lower(process, 0)

    TimeSharing.raise_all = raise_first


@mutant
def blocked_processes_wake_late(spec: Mapping[str, Any]) -> None:
    """A process that sleeps is woken 100 ms after its message."""
    from lanikai.sim.host.cosched.strategy import Strategy
    from lanikai.sim.host.cpu.process import State
    from lanikai.sim.host.cpu.timekeeper import Rank

    def interrupted(self: Any, node: Any, endpoint: Any, *, wake: bool) -> None:
        time = node.host.time
        if wake:
            time.call_at(time.cycle + time.hz // 10, Rank.OUTSIDE, lambda _: endpoint.semaphore.set(), 0)
        elif endpoint.process is not None and endpoint.process.state is not State.ENDED:
            self.arrival.interrupted(node, endpoint)

    Strategy.interrupted = interrupted


@mutant
def asking_who_runs_is_slow(spec: Mapping[str, Any]) -> None:
    """A card that asks who runs delays messages by 20 us."""
    from lanikai.sim.host.cosched.node import Node

    right = _RIGHT.setdefault("Node", Node.__init__)

    def slow(self: Any, host: Any, strategy: Any, config: Any) -> None:
        right(self, host, strategy, config.replace(estimate_ns=20_000))

    Node.__init__ = slow


@mutant
def short_jobs_are_not_boosted(spec: Mapping[str, Any]) -> None:
    """Boosts, sleeping and yielding are left out where the scale is small."""
    if spec.get("scale", 1.0) < 0.006:
        boosts_do_nothing(spec)
        all_wait_busily(spec)


@mutant
def yielding_costs_much(spec: Mapping[str, Any]) -> None:
    """A process that yields works for 20 ms in the kernel, for nothing."""
    from lanikai.sim.host.cosched.waiting import SpinYield, spin_a_while

    async def wait(self: Any, endpoint: Any) -> None:
        if not await spin_a_while(endpoint):
            await endpoint.process.system_call(endpoint.node.host.machine.cycles(20_000_000))
            await endpoint.process.spin(endpoint.arrived)

    SpinYield.wait = wait


@mutant
def spinning_costs_nothing(spec: Mapping[str, Any]) -> None:
    """A process that waits busily sleeps, and wakes at once."""
    from lanikai.sim.host.cosched.waiting import BusyWait

    async def wait(self: Any, endpoint: Any) -> None:
        await endpoint.process.block(endpoint.arrived)

    BusyWait.wait = wait


@mutant
def PBF_boosts_the_first_job(spec: Mapping[str, Any]) -> None:
    """The fair boost is for processes of the first job alone."""
    from lanikai.sim.host.cosched.strategies.pbf import FairBoost

    def choose(self: Any, node: Any) -> Any:
        return next((one for one in node.endpoints if one.process is not None and one.process.job == 0), None)

    FairBoost.choose = choose
