"""A cluster from Python: host programs on it are coroutines of a script, a notebook cell or `python -c`."""

from __future__ import annotations

import base64
import difflib
import inspect
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanikai.sim.carried import unpack
from lanikai.sim.errors import SimulationError, UserError
from lanikai.sim.extensions import registry
from lanikai.sim.systems.cluster import ClusterConfig, cluster_preset

from .errors import plain
from .host import Host

if TYPE_CHECKING:
    import polars
    from lanikai.firmware.program import FirmwareProgram

__all__ = ["Cluster", "ClusterRun", "Program"]

Program = Callable[[Host], Awaitable[Any]]
"""A host program: a coroutine function that is given its `Host`."""


Prepare = Callable[[Any, Sequence[Any]], Awaitable[Any]]
"""A coroutine function of a cluster inside its simulation, and of the libraries of its hosts."""


class Cluster:
    """Hosts with programmable cards, joined by routers.

    - `preset`: `lanai4` (default), `lanai7`, `lanai41`, `via5`, `iba` or `tiny`.
    - `nodes`: how many hosts. `network`: the routers between them, a `lanikai.Network` or its topology; without it one
      router joins them all, at most 16. With it `nodes` may be left out.
    - `firmware`: the program of the cards: its name (`gm`, `work_queue`, `via`, `am`), or a `FirmwareProgram` class of
      the script's own.
    - `settings`: other fields of `lanikai.sim.systems.cluster.ClusterConfig`.

    Raises UserError in one line for whatever cannot be built.
    """

    @plain
    def __init__(
        self,
        preset: str = "lanai4",
        *,
        nodes: int | None = None,
        network: Any = None,
        firmware: str | type[FirmwareProgram[Any]] | None = None,
        **settings: Any,
    ) -> None:
        for key in settings:
            if key not in ClusterConfig.model_fields:
                close = difflib.get_close_matches(key, ClusterConfig.model_fields, n=1)
                hint = f" (did you mean {close[0]!r}?)" if close else ""
                valid = ", ".join(ClusterConfig.model_fields)
                raise UserError(f"Cluster: unknown setting {key!r}{hint}; valid: {valid}")
        if firmware is not None:
            settings["firmware"] = firmware if isinstance(firmware, str) else _named(firmware)
        if network is None:
            if nodes is not None:
                settings["nodes"] = nodes
                _check_nodes(preset, settings)
            self.config = cluster_preset(preset, **settings)
        else:
            config = cluster_preset(preset, **settings)
            self.config = config.on(_network(network, config))
            if nodes not in (None, self.config.nodes):
                raise UserError(f"Cluster: nodes = {nodes}: the network has places for {self.config.nodes}")

    @property
    def nodes(self) -> int:
        """How many hosts it has."""
        return self.config.nodes

    def __repr__(self) -> str:
        return f"<Cluster of {self.nodes} nodes, firmware {self.config.firmware}>"

    @plain
    def run(
        self,
        programs: Program | Sequence[Program] | Mapping[int, Program],
        *,
        interface: str = "gm",
        prepare: Prepare | None = None,
        seed: int = 1,
        firmware_config: Any = None,
        host_costs: Any = None,
        out: str | Path | None = None,
        waves: bool = False,
        timeout_seconds: float | None = None,
        quiet: bool = False,
    ) -> ClusterRun:
        """Run host programs until all of them have ended.

        - `programs`: one for every host, a list with one for each host from 0 on, or a mapping of hosts to programs.
          Each is an `async def` function that is given its `Host`. It is copied to the simulator's process: what it
          returns comes back, and what it prints; what it changes elsewhere does not.
        - `interface`: `gm`, `mpi`, `via`, `am` or `kit`: the library that hosts have.
        - `prepare`: a coroutine function that is called before the programs, with the cluster inside its simulation and
          the libraries of all hosts. The programs have what it returns as `host.shared`.
        - `firmware_config`, `host_costs`: of the cards' program and of the library's calls; None for their defaults.
        - `out`: a folder that keeps the log. `waves`: write a waveform into it, too (slower).
        - `timeout_seconds`: the run is ended after so much time of the wall clock.

        `breakpoint()` in a program opens the debugger here. Raises ProgramError, with the user's lines, if a program
        fails, SimulationError if nothing moves any more, and UserError.
        """
        listed = self._listed(programs)
        if waves and out is None:
            raise UserError("waves = True: name a folder for them: out='...'")
        carried = {
            "programs": listed,
            "prepare": prepare,
            "firmware_config": firmware_config,
            "host_costs": host_costs,
        }
        return _run(
            self.config,
            {"interface": interface},
            carried,
            [node for node, _ in listed],
            seed=seed,
            out=out,
            waves=waves,
            timeout_seconds=timeout_seconds,
            quiet=quiet,
        )

    def _listed(self, programs: Any) -> list[tuple[int, Program]]:
        """Each program with its node. Raises UserError."""
        if callable(programs):
            listed = [(node, programs) for node in range(self.nodes)]
        elif isinstance(programs, Mapping):
            listed = list(programs.items())
        elif isinstance(programs, list | tuple):
            listed = list(enumerate(programs))
        else:
            raise UserError(f"programs: {programs!r}: an `async def` function, a list of them, or a mapping")
        for node, program in listed:
            if type(node) is not int or not 0 <= node < self.nodes:
                raise UserError(f"programs: there is no host {node!r}; hosts are 0 to {self.nodes - 1}")
            if not inspect.iscoroutinefunction(program):
                what = (
                    "a coroutine; give the function, without ()"
                    if inspect.iscoroutine(program)
                    else repr(program)
                )
                raise UserError(
                    f"programs: the program of host {node} is {what}: an `async def` function is needed"
                )
        if not listed:
            raise UserError("programs: there is none; give one for at least one host")
        return listed


def _check_nodes(preset: str, settings: Mapping[str, Any]) -> None:
    """Raise UserError if one router of the preset has to join more nodes than a hop of a source route can name.

    A setting that changes cards or routers is judged by `ClusterConfig` alone.
    """
    if settings.keys() & {"chain", "topology", "nic", "router"}:
        return
    nodes, most = settings["nodes"], 1 << cluster_preset(preset).nic.link.hop_bits
    if isinstance(nodes, int) and nodes > most:
        raise UserError(
            f"Cluster: nodes = {nodes}: one router joins at most {most}; give a network, as in network='mesh8x8'"
        )


def _named(firmware: Any) -> str:
    """The name of a firmware class, which from then on is known by it. Raises ConfigError for what is none."""
    name = getattr(firmware, "__name__", "firmware").lower()
    registry("firmware").add(name, firmware)
    return name


def _network(network: Any, config: ClusterConfig) -> Any:
    """The network of a cluster: that given, or a topology with the routers of the cluster's preset."""
    from .network import Network, topology_of

    if isinstance(network, Network):
        return network.config
    return topology_of(network, config.router)


def _run(
    config: ClusterConfig,
    spec: Mapping[str, Any],
    carried: Any,
    places: list[int],
    *,
    seed: int,
    out: str | Path | None,
    waves: bool,
    timeout_seconds: float | None,
    quiet: bool,
) -> ClusterRun:
    """Build the cluster, run the carried programs in it, read what they gave."""
    from lanikai.sim.build.cache import Cache
    from lanikai.sim.cli import doctor
    from lanikai.sim.machine import Threads
    from lanikai.sim.run import run

    from .inside import RUN_PROGRAMS
    from .screen import HereConsole, bars

    Cache().check()
    doctor.require(doctor.WAVES if waves else doctor.RUN)
    with bars(["build"], quiet=quiet) as progress:
        model = config.build(
            "waves" if waves else "fast", lambda fraction, text: progress(-1, fraction, text)
        )
    entry, whole = config.job(RUN_PROGRAMS, spec)
    with tempfile.TemporaryDirectory(prefix="lanikai-") as scratch:
        folder = Path(scratch) if out is None else Path(out)
        try:
            done = run(
                model,
                entry,
                whole,
                out_dir=folder,
                seed=seed,
                name="cluster",
                timeout_seconds=timeout_seconds,
                threads=Threads.share(None, 1, 1),
                carried=carried,
                console=HereConsole(),
            )
        except OSError as error:
            raise UserError(f"out = {str(out)!r} cannot be written: {error.strerror}") from None
        except SimulationError as error:
            if out is not None or error.lines:
                raise
            # The log that it names goes with the folder.
            text = str(error).partition(" (log: ")[0]
            raise SimulationError(f"{text} (out='DIR' keeps the log)") from None
        log = done.log.read_text(errors="replace")
    return ClusterRun(
        values=dict(zip(places, unpack(base64.b64decode(done.value["values"])), strict=True)),
        cycles=done.value["program_cycles"],
        clock_hz=config.nic.clock_hz,
        wall_seconds=done.seconds,
        log=log,
        folder=None if out is None else folder,
        waves=done.waves,
    )


def _series(name: str, values: list[Any]) -> polars.Series:
    """A column with these values, of whatever types."""
    import polars

    kinds = {type(value) for value in values if value is not None}
    alike = len(kinds) <= 1 or kinds <= {int, float}
    return polars.Series(name, values, strict=False) if alike else polars.Series(name, values, polars.Object)


@dataclass(frozen=True, kw_only=True)
class ClusterRun:
    """Programs that have run.

    - `values`: for each host that had a program, the value that it returned.
    - `cycles`: from the programs' start to the end of the last one, of the card's clock of `clock_hz`.
    - `wall_seconds`: the time that the whole simulation took.
    - `log`: all that the simulation printed, the programs' own prints too.
    - `folder`, `waves`: what `out` and `waves` asked for, or None.
    """

    values: Mapping[int, Any]
    cycles: int
    clock_hz: float
    wall_seconds: float
    log: str
    folder: Path | None
    waves: Path | None

    @property
    def microseconds(self) -> float:
        """Simulated time from the programs' start to the end of the last one."""
        return self.cycles * 1e6 / self.clock_hz

    @cached_property
    def frame(self) -> polars.DataFrame:
        """The programs' values as rows, with the column `node`: one for a dictionary, one for each of a list of them.
        Any other value is the column `value`. Columns of values of several types hold Python's own objects."""
        import polars

        rows: list[dict[str, Any]] = []
        for node, value in self.values.items():
            for one in value if isinstance(value, list) else [value]:
                rows.append({"node": node, **(one if isinstance(one, Mapping) else {"value": one})})
        columns = dict.fromkeys(key for row in rows for key in row)
        return polars.DataFrame([_series(key, [row.get(key) for row in rows]) for key in columns])

    def __repr__(self) -> str:
        return (
            f"<ClusterRun of {len(self.values)} programs: {self.cycles} cycles, {self.microseconds:.1f} us>"
        )
