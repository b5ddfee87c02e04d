"""The base of every system under test: its configuration, and the object that coroutines use inside its simulation.

To make a system, write two classes. Each declares only what no other system has:

- a `SystemConfig`: fields, `title`, `inside`, `not_in_design`, and `design`;
- a `System`: what its coroutines call, and with a watchdog `probes`.

A configuration is light: whoever makes one need not load cocotb, nor the blocks of the design.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from lanikai.hdl.config import Config

from ..errors import SimulationError
from ..inside import native_api
from ..inside.watchdog import Probe, report, summary

if TYPE_CHECKING:
    from ..build.model import Design, Model, Progress, Variant
    from ..inside.session import Session

__all__ = ["ENTRY", "System", "SystemConfig", "run_point"]

ENTRY = "lanikai.sim.systems.base:run_point"
"""The `entry` of `run.run` for a point of any system."""


class SystemConfig(Config):
    """The configuration of a system.

    - `title`: the system in a few words, for progress and in the design's key.
    - `inside`: "module:class" of its `System`.
    - `not_in_design`: names of fields that change nothing of the design. Configurations that differ in them alone
      share a model.

    Raises TypeError for a subclass whose `not_in_design` names what is no field of it.
    """

    title: ClassVar[str]
    inside: ClassVar[str]
    not_in_design: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **keywords: Any) -> None:
        """Refuse a name of no field: the field that was meant would go into the key."""
        super().__pydantic_init_subclass__(**keywords)
        if unknown := sorted(cls.not_in_design - set(cls.model_fields)):
            raise TypeError(
                f"{cls.__name__}.not_in_design names {', '.join(unknown)}; "
                f"the fields are {', '.join(cls.model_fields)}"
            )

    @abstractmethod
    def design(self, variant: Variant = "fast") -> Design:
        """The design in Verilog, as `variant` wants it."""

    def key(self) -> str:
        """The fields that the design follows from, as JSON."""
        return self.model_dump_json(exclude=set(self.not_in_design))

    def build(self, variant: Variant = "fast", progress: Progress | None = None) -> Model:
        """The system's model, from the cache if it was built before. Raises as `build.model.build` does."""
        from ..build.model import Recipe, build

        recipe = Recipe(name=self.title, config=self.key(), make=lambda: self.design(variant))
        return build(recipe, variant, progress)

    def job(self, entry: str, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The entry and the spec that `run.run` is given to have `entry` ("module:coroutine") run on the system with
        `spec`."""
        made_by = f"{type(self).__module__}:{type(self).__qualname__}"
        return ENTRY, {
            "system": made_by,
            "config": self.model_dump(mode="json"),
            "entry": entry,
            "spec": dict(spec),
        }


C = TypeVar("C", bound=SystemConfig)


class System(Generic[C]):
    """A system inside its simulation.

    - `config`; `clock` (`inside.clock.Clock`).
    - `seed`, `random`, `progress(fraction, text)`, `out_dir`, `carried`: as the run has them
      (`inside.session.Session`).

    A subclass whose design has a watchdog calls `watch` when it is set up, and has `probes`. The watchdog ends the
    simulation with SimulationError when nothing has moved for as long as `limit_watchdog` says. Before that it writes
    `state` into the log.
    """

    def __init__(self, config: C, session: Session) -> None:
        self.config = config
        self.clock = session.clock
        self.seed, self.random = session.seed, session.random
        self.progress, self.out_dir = session.progress, session.out_dir
        self.carried = session.carried
        self._dut = session.dut
        self._watchdog_cycles = 0

    async def prepare(self) -> None:
        """Do what has to be done when the simulation starts, before anything else: nothing by default."""

    def say(self, text: str) -> None:
        """Write a line into the simulation's log, unless it is empty."""
        if text:
            print(text, flush=True)

    def probes(self) -> Sequence[Probe]:
        """The variables that the watchdog shows: none by default."""
        return ()

    def state(self) -> list[str]:
        """The values that the probes show now, a line each, for a log."""
        return report(self._top, self.probes())

    def stuck(self) -> str:
        """The probes that are not at rest, in a few words; "" if all are."""
        return summary(self._top, self.probes())

    def waiting(self) -> str:
        """The things that the simulation waits for, in a few words, for the error that ends it."""
        stuck = self.stuck()
        return f"waiting: {stuck}" if stuck else "no flit waits in the network"

    def watch(self) -> None:
        """Let the watchdog end the simulation. It counts as soon as it has a limit: `limit_watchdog`."""
        self.clock.spawn(self._watch(), "watchdog")

    def limit_watchdog(self, cycles: int) -> None:
        """Have the watchdog end the simulation after so many cycles without any movement; 0: never."""
        self._watchdog_cycles = cycles
        native_api.signal("watchdog_limit").set(cycles)

    def end(self, why: str) -> NoReturn:
        """Write the state into the log and end the simulation. Raises SimulationError."""
        print(f"watchdog: state in cycle {self.clock.cycle}", *self.state(), sep="\n", flush=True)
        raise SimulationError(f"{why} (now cycle {self.clock.cycle}); {self.waiting()}")

    @property
    def _top(self) -> str:
        """The top module's name."""
        return str(self._dut._name)

    async def _watch(self) -> None:
        await self.clock.change(self._dut.watchdog_fired)
        self.end(f"nothing has moved for {self._watchdog_cycles} cycles")


async def run_point(session: Session) -> Any:
    """Make the system of a session whose spec is `SystemConfig.job`'s. Run the coroutine named there with it and its
    spec. Returns the coroutine's value."""
    job = session.spec
    config = _named(job["system"])(**job["config"])
    system = _named(config.inside)(config, session)
    coroutine = _named(job["entry"])
    session.started = time.perf_counter()
    await system.prepare()
    return await coroutine(system, job["spec"])


def _named(place: str) -> Any:
    """The object that `place`, "module:name", names. Raises ImportError, AttributeError."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
