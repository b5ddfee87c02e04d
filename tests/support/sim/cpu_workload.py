"""A small machine, and processes that do everything at random: the same on every kind of host and time."""

from __future__ import annotations

import random
from typing import Any

from lanikai.sim.host.cpu.host import Host
from lanikai.sim.host.cpu.machine import Machine, Price
from lanikai.sim.host.cpu.process import HostProcess
from lanikai.sim.host.cpu.requests import Signal
from lanikai.sim.host.cpu.round_robin import RoundRobin
from lanikai.sim.host.cpu.time_sharing import TimeSharing
from lanikai.sim.host.cpu.timekeeper import Timekeeper

HZ = 1_000_000
PROCESSES = 3
SCHEDULERS = ("time sharing", "round robin")


def small_machine(hz: int = HZ) -> Machine:
    """A slow machine, on which everything takes a few cycles."""
    names = {
        "cache_word": 1,
        "memory_word": 2,
        "card_read": 3,
        "card_write": 2,
        "system_call": 7,
        "context_switch": 11,
        "interrupt": 5,
        "timer": 3,
        "poll": 4,
    }
    prices = {name: Price(cycles, "assumed: for tests") for name, cycles in names.items()}
    return Machine(hz=hz, source="tests", **prices)


class Workload:
    """Hosts of `kind` on `time`, with processes that make `steps` random requests each. `log`: what they saw, when."""

    def __init__(
        self,
        time: Timekeeper,
        seed: int,
        scheduler: str,
        *,
        kind: type[Host] = Host,
        steps: int = 40,
        hz: int = HZ,
    ) -> None:
        self.time = time
        self.log: list[tuple[Any, ...]] = []
        self.steps = steps
        chance = random.Random(seed)
        self.hosts = [
            kind(
                time,
                small_machine(hz),
                self._scheduler(scheduler, chance),
                node=node,
                processors=chance.choice([1, 1, 2]),
                tick_phase=chance.randrange(1000),
                record=True,
            )
            for node in range(2)
        ]
        for host in self.hosts:
            self._fill(host, seed, chance, scheduler)

    @property
    def over(self) -> bool:
        """Whether all processes have ended."""
        return not any(host.processes for host in self.hosts)

    def seen(self) -> dict[str, Any]:
        """Everything that must be equal: logs, stretches of running, cycles."""
        return {
            "log": self.log,
            "turns": [[(*turn[:2], turn[2].name) for turn in host.turns or ()] for host in self.hosts],
            "kernel": [[one.kernel_cycles for one in host.processors] for host in self.hosts],
        }

    def _scheduler(self, name: str, chance: random.Random) -> Any:
        if name == "time sharing":
            return TimeSharing(raise_phase=self.time.cycle + chance.randrange(HZ))
        return RoundRobin(3)

    def _fill(self, host: Host, seed: int, chance: random.Random, scheduler: str) -> None:
        now = self.time.cycle
        signals = [Signal() for _ in range(PROCESSES)]
        for number, signal in enumerate(signals):
            own = random.Random(f"{seed} {host.node} {number}")
            host.start(self._program(signal, own), name=f"{host.node}.{number}", job=number)

        def set_all() -> None:
            for signal in signals:
                signal.set()

        def boost() -> None:
            if host.processes:
                host.scheduler.boost(chance.choice(host.processes))  # type: ignore[attr-defined]

        host.every(
            chance.randrange(2000, 9000),
            set_all,
            cycles=chance.randrange(9),
            first=now + chance.randrange(5000),
        )
        host.clockwork(chance.randrange(1000, 5000), signals[0].set, first=now + 77)
        if scheduler == "time sharing":
            host.every(10_000, boost, cycles=2, first=now + chance.randrange(9000))

    def _program(self, signal: Signal, chance: random.Random) -> Any:
        async def main(process: HostProcess) -> None:
            for _ in range(self.steps):
                step = chance.randrange(9)
                if step < 3:
                    await process.compute(chance.randrange(9000))
                elif step == 3:
                    await process.system_call(chance.randrange(1500))
                elif step == 4:
                    self.log.append(
                        (self.time.cycle, process.name, await process.spin(signal, chance.randrange(5000)))
                    )
                    signal.clear()
                elif step == 5:
                    await process.block(signal)
                    signal.clear()
                elif step == 6:
                    await process.copy(chance.randrange(200))
                elif step == 7:
                    await process.give_way()
                else:
                    await process.compute(0)
                self.log.append((self.time.cycle, process.name, step, process.used, process.level))

        return main
