"""The coroutine of mixed traffic: real-time streams, best effort and control packets, under the controls of a `Mix`.

`measure` is the entry of an experiment. One that does more gives `run_mix` its own hooks, from an entry of its own.

A run has these steps:

1. Agents and adapters start. Each host asks for its streams, one after the other, all hosts at the same time. Traffic
   begins when all are answered: streams last as long as the run.
2. VL tables of routers and adapters are written by the agents. Without admission they are written here, with the
   weights that all streams together ask for. So admission decides who sends, and nothing else.
3. Traffic runs for the warm-up and the window.

Times are cycles of the link: a flit's time. Latency is from a message's doorbell to its receiver's completion. The time
from its birth includes its wait for credits and for room in the ring of its class.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lanikai.hdl.hca.injection.control import injection_class
from lanikai.hdl.router.scheduler import has_tables

from ...admission.host import State
from ...admission.network import AdmittedNetwork
from ...energy.activity import Activity
from ...host.hca.adapters import Adapters
from ...host.hca.driver import HcaDriver
from .best_effort import output_ports, set_up_injection
from .deadlines import total
from .mix import CLASSES, Mix
from .mixed_host import ClassSums, MixedHost, Window
from .streams import Stream, granted, plan_streams

if TYPE_CHECKING:
    from ...systems.adapters.network import AdapterNetwork

__all__ = ["Prepared", "measure", "run_mix"]

ASK_POLL_CYCLES = 50
"""How often a host looks for the answer to its request."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A network that is set up and whose traffic has not begun, for the hook `prepare`.

    - `drivers`: of the adapters, by nodes. `hosts`: by nodes.
    - `streams`: of each node.
    - `admitted`: the agents; None without admission.
    """

    drivers: Sequence[HcaDriver]
    hosts: Sequence[MixedHost]
    streams: Sequence[Sequence[Stream]]
    admitted: AdmittedNetwork | None


async def measure(system: AdapterNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point; `spec` has the fields of a `Mix`. Samples are the routers' activity, if there are any.

    Returns what `run_mix` does.
    """
    mix = Mix(**spec)
    if not mix.interval_cycles:
        return await run_mix(system, mix)
    meter: list[Any] = []

    async def prepare(_prepared: Prepared) -> None:
        meter.append(system.activity_meter())

    def sample() -> list[int]:
        return Activity.total(meter[0].read().routers).as_list()

    return await run_mix(system, mix, prepare=prepare, sample=sample)


async def run_mix(
    system: AdapterNetwork,
    mix: Mix,
    *,
    prepare: Callable[[Prepared], Awaitable[None]] | None = None,
    sample: Callable[[], Any] | None = None,
) -> dict[str, Any]:
    """Run a mix.

    - `prepare`: awaited when all is set up and no traffic has begun. It may write registers and VL tables, and keep
      what it is given.
    - `sample`: called at the window's start, which is not kept, and after every `mix.interval_cycles` of it. It returns
      plain JSON.

    Returns plain JSON:

    - `streams`, `units`: streams that were asked for, and their rates' sum.
    - `refused`, `refused_units`: those that were refused. `unanswered`: those that nobody answered.
    - `refusals`: how many for each `Reason`.
    - `frames`, `missed`, `late_cycles`: of all MPEG streams, as in `DeadlinesMissed`.
    - `classes`: for each of `CLASSES` the fields of `ClassSums`.
    - `failed`: completions that were errors.
    - `setup_cycles`: until the traffic began.
    - `intervals`: the samples.
    """
    nodes = range(len(system.hosts))
    adapters = Adapters(system)
    await adapters.start()
    drivers = adapters.drivers
    admitted = None
    if mix.admission:
        admitted = AdmittedNetwork(system, mix.admission_config, power=mix.power_units)
        await admitted.start(drivers)
    hosts = [MixedHost(system, mix, node, driver) for node, driver in enumerate(drivers)]
    await _together(system, [host.start() for host in hosts])
    for node in nodes:
        words = list(mix.setup[node]) if mix.setup else []
        if injection_class(system.config.hca).output_ports:
            words += output_ports(system, node)
        await set_up_injection(system, drivers[node], words)
    streams = plan_streams(mix, nodes=len(nodes), seed=system.seed)
    refusals: dict[str, int] = {}
    unanswered = 0
    if admitted:
        unanswered = await _ask(system, admitted, streams, refusals)
    else:
        await _write_tables(system, mix, drivers, streams)
    for host in hosts:
        host.connect(hosts, streams[host.node])
    if prepare:
        await prepare(
            Prepared(drivers=tuple(drivers), hosts=tuple(hosts), streams=streams, admitted=admitted)
        )
    begin = system.now + mix.warmup_cycles
    window = Window(start=system.now, begin=begin, end=begin + mix.window_cycles)
    setup_cycles = system.now
    for host in hosts:
        host.send(window)
    if mix.warmup_cycles:
        await system.clock.sleep(mix.warmup_cycles)
    intervals: list[Any] = []
    if sample and mix.interval_cycles:
        sample()
        for _ in range(mix.window_cycles // mix.interval_cycles):
            await system.clock.sleep(mix.interval_cycles)
            intervals.append(sample())
    if window.end > system.now:
        await system.clock.sleep(window.end - system.now)
    every = [stream for node in streams for stream in node]
    refused = [stream for stream in every if not stream.admitted]
    deadlines = total([one.result for host in hosts for one in host.deadlines])
    return {
        "streams": len(every),
        "units": sum(stream.units for stream in every),
        "refused": len(refused),
        "refused_units": sum(stream.units for stream in refused),
        "unanswered": unanswered,
        "refusals": refusals,
        "frames": deadlines.frames,
        "missed": deadlines.missed,
        "late_cycles": deadlines.late_cycles,
        "classes": {name: asdict(ClassSums.total([host.sums[name] for host in hosts])) for name in CLASSES},
        "failed": sum(host.failed for host in hosts),
        "setup_cycles": setup_cycles,
        "intervals": intervals,
    }


async def _together(system: AdapterNetwork, coroutines: Sequence[Awaitable[None]]) -> None:
    """Run them beside each other until all have ended."""
    left, done = [len(coroutines)], system.clock.flag()

    async def one(coroutine: Awaitable[None]) -> None:
        await coroutine
        left[0] -= 1
        if not left[0]:
            done.set()

    for number, coroutine in enumerate(coroutines):
        system.clock.spawn(one(coroutine), f"step {number} of setting up")
    await done.wait()


async def _ask(
    system: AdapterNetwork,
    admitted: AdmittedNetwork,
    streams: Sequence[Sequence[Stream]],
    refusals: dict[str, int],
) -> int:
    """Ask for all streams, and mark those that are refused. Returns how many nobody answered."""
    unanswered = [0]

    async def ask(node: int) -> None:
        agent = admitted.hosts[node]
        for stream in streams[node]:
            request = agent.open(
                destination=stream.destination,
                flow=stream.flow,
                units=stream.units,
                peak=stream.peak,
                vl=stream.vl,
            )
            while request.state is State.ASKING or request.releasing:
                await system.clock.sleep(ASK_POLL_CYCLES)
            stream.admitted = request.state is State.OPEN
            unanswered[0] += request.state is State.SILENT
            if request.state is State.REFUSED:
                refusals[request.reason.name] = refusals.get(request.reason.name, 0) + 1

    await _together(system, [ask(node) for node in range(len(streams))])
    # The last tables are written when nothing else is to be done.
    while not admitted.settled:
        await system.clock.sleep(ASK_POLL_CYCLES)
    return unanswered[0]


async def _write_tables(
    system: AdapterNetwork,
    mix: Mix,
    drivers: Sequence[HcaDriver],
    streams: Sequence[Sequence[Stream]],
) -> None:
    """Write the VL tables of the adapters and the routers from all streams, where no agents do."""
    network = system.config.network
    if not has_tables(network.router):
        return
    of_routers, of_hosts = granted(mix, network, streams)

    async def write_router(number: int) -> None:
        agent, ledger = system.agent(number), of_routers[number]
        for port in range(ledger.ports):
            for crossbar in (False, True):
                tables = ledger.tables(port, crossbar_input=crossbar)
                await agent.write_tables(**tables._asdict(), port=port, crossbar=crossbar)

    async def write_adapter(node: int) -> None:
        await drivers[node].write_tables(**of_hosts[node].tables(0, crossbar_input=False)._asdict())

    steps = [write_adapter(node) for node in range(len(drivers))]
    steps += [write_router(number) for number in range(network.routers)]
    await _together(system, steps)
