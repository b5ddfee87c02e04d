"""One extension of each kind, as a user would write it: the file, the line in the registry, and what shows that it
works. `tests/test_extending.py` puts them into a copy of the package."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXTENSIONS", "Extension"]


@dataclass(frozen=True, kw_only=True)
class Extension:
    """An extension of the package.

    - `file`, `text`: the new file and its content.
    - `registry`, `entry`, `before`: in the registry's file the entry goes before that line.
    - `imports`, `imports_before`: likewise the imports, if that file imports what it lists.
    - `check`: code that fails unless the extension is used.
    """

    file: str
    text: str
    check: str
    registry: str = ""
    entry: str = ""
    before: str = ""
    imports: str = ""
    imports_before: str = ""


EXTENSIONS = {
    "experiment": Extension(
        file="sim/experiments/pulses.py",
        text='''
"""Pulses: one flow, which has the whole of the bandwidth."""

from lanikai.hdl.config import Config

from .framework.base import Claim, Experiment, Point


class Pulses(Experiment):
    """A single flow on the system `PulseConfig`."""

    name = "pulses"
    asks = "Does one flow have all of the bandwidth?"
    source = "no document: an example"
    entry = "lanikai.sim.systems.pulse:measure"
    Parameters = Config

    def points(self, parameters, size):
        spec = {"flows": [{"idt_ticks": 96}], "window_packets": 10}
        return [Point(label="one flow", parameters={"flows": 1}, spec=spec)]

    def cluster(self, parameters):
        from ..systems.pulse import PulseConfig

        return PulseConfig(width=3)

    def results(self, parameters, point, measured):
        return {"payload_bytes": sum(measured["payload_bytes"])}

    def claims(self, parameters, outcomes):
        return [Claim.every("all packets are counted", (o.results["payload_bytes"] == 40960 for o in outcomes))]

    def plot(self, parameters, outcomes, figure):
        figure.add_subplot().bar([0], [outcomes[0].results["payload_bytes"]])
''',
        registry="sim/experiments/registry.py",
        entry='    "pulses": "pulses:Pulses",\n',
        before='    "rate-accuracy"',
        check="""
from lanikai.sim.experiments.framework import runner
from lanikai.sim.experiments.framework.run_folder import RunFolder
from lanikai.sim.experiments.registry import find, listing
from support.sim.fake_backend import FakeBackend

experiment = find("pulses")
assert "pulses" in [row.name for row in listing()]
report = runner.execute(
    experiment, experiment.Parameters(), points=experiment.points(None, "quick"), size="quick", seed=1,
    folder=RunFolder(Path("run"), experiment="pulses", size="quick", seed=1), backend=FakeBackend(),
)
assert [claim.holds for claim in report.claims] == [True]
assert list(Path("run").glob("**/*.csv")) and list(Path("run").glob("**/*.png"))
""",
    ),
    "system": Extension(
        file="sim/systems/pulse.py",
        text='''
"""A counter alone, as a system."""

from lanikai.sim.build.model import block_design
from lanikai.sim.systems.base import System, SystemConfig


class PulseConfig(SystemConfig):
    """A counter of `width` bits."""

    title = "pulse"
    inside = "lanikai.sim.systems.pulse:Pulse"

    width: int = 1

    def design(self, variant="fast"):
        from amaranth import Module
        from amaranth.lib import wiring
        from amaranth.lib.wiring import Out

        class Counter(wiring.Component):
            def elaborate(self, platform):
                m = Module()
                m.d.sync += self.value.eq(self.value + 1)
                return m

        return block_design(Counter({"value": Out(self.width)}), name="pulse")


class Pulse(System[PulseConfig]):
    """The counter inside its simulation."""
''',
        check="""
from lanikai.sim.experiments.registry import find
from lanikai.sim.systems.base import ENTRY
from lanikai.sim.systems.pulse import PulseConfig

system = find("pulses").system(None, None)
assert system == PulseConfig(width=3) and system.key() != PulseConfig().key()
assert system.job("a:b", {})[0] == ENTRY
assert any("[2:0] value" in text for text in system.design().sources.values())
""",
    ),
    "arbiter": Extension(
        file="hdl/arbiter/lowest_first.py",
        text='''
"""The lowest number first."""

from amaranth import Module

from .arbiter import Arbiter


class LowestFirstArbiter(Arbiter):
    """Requester 0 before 1 before 2. No memory; only requester 0 has a bound on its wait."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.grant.eq(self.requests & -self.requests)
        return m
''',
        registry="hdl/arbiter/__init__.py",
        entry='"lowest_first": LowestFirstArbiter, ',
        before='"round_robin": RoundRobinArbiter',
        imports="from .lowest_first import LowestFirstArbiter\n",
        imports_before="from .round_robin import",
        check="""
from amaranth.sim import Simulator
from lanikai.hdl.arbiter import arbiter_class
from lanikai.hdl.config import RouterConfig

arbiter = arbiter_class(RouterConfig(arbiter="lowest_first").arbiter)(size=3)

async def ask(ctx):
    for requests, grant in ((0b110, 0b010), (0b111, 0b001), (0b100, 0b100), (0, 0)):
        ctx.set(arbiter.requests, requests)
        assert ctx.get(arbiter.grant) == grant

simulator = Simulator(arbiter)
simulator.add_testbench(ask)
simulator.run()
""",
    ),
    "switch allocator": Extension(
        file="hdl/router/allocators/first_choice.py",
        text='''
"""First choices alone: what they leave stays idle."""

from amaranth import Module

from .allocator import Allocator


class FirstChoiceAllocator(Allocator):
    """The choices of the separable allocator without its sweep."""

    def elaborate(self, platform):
        m = Module()
        firsts, grants, goes = self._first_choices(m)
        for i, first in enumerate(firsts):
            m.d.comb += [self.select[i].eq(first), self.accepted[i].eq(goes[i])]
        for p, grant in enumerate(grants):
            m.d.comb += self.grant[p].eq(grant)
        return m
''',
        registry="hdl/router/allocators/__init__.py",
        entry='    "first_choice": FirstChoiceAllocator,\n',
        before='    "islip"',
        imports="from .first_choice import FirstChoiceAllocator\n",
        imports_before="from .islip import",
        check="""
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_rtlil
from lanikai.hdl.router.router import Router

def cells(name):
    return to_rtlil(Router(RouterConfig(ports=2, link=LinkConfig(vls=2), allocator=name)), name="router").count("cell ")

assert cells("first_choice") < cells("separable")
""",
    ),
    "injection control of an adapter": Extension(
        file="hdl/hca/injection/every_other.py",
        text='''
"""A message may begin in every other cycle."""

from amaranth import Module, Signal

from .policy import InjectionPolicy


class EveryOther(InjectionPolicy):
    """Allows messages in every other cycle."""

    def elaborate(self, platform):
        m = Module()
        turn = Signal()
        m.d.sync += turn.eq(~turn)
        m.d.comb += self.control.allow.eq(turn)
        return m
''',
        registry="hdl/hca/injection/registry.py",
        entry='    "every_other": EveryOther,\n',
        before='    "self_tuned"',
        imports="from .every_other import EveryOther\n",
        imports_before="from .none import",
        check="""
from lanikai.hdl.config import HcaConfig, preset
from lanikai.hdl.emit import to_rtlil
from lanikai.hdl.hca.injection.control import InjectionControl
from lanikai.sim.experiments.registry import find

config = preset(HcaConfig, "tiny").replace(injection="every_other")
assert "turn" in to_rtlil(InjectionControl(config), name="control")
congestion = find("congestion")
parameters = congestion.Parameters(schemes=["every_other"], loads=[0.5])
(point,) = congestion.points(parameters, "quick")
assert congestion.system(parameters, point).hca.injection == "every_other"
""",
    ),
    "firmware program": Extension(
        file="firmware/greeting.py",
        text='''
"""A program that writes one word where the host finds it."""

from lanikai.hdl.config import Config
from lanikai.hdl.nic.ports import SRAM_BASE

from .costs import CostTable
from .processor import Processor
from .program import FirmwareProgram


class GreetingConfig(Config):
    """The word."""

    word: int = 42


class GreetingProgram(FirmwareProgram[GreetingConfig]):
    """Writes its word into the first word of SRAM."""

    Config = GreetingConfig
    default_costs = CostTable("greeting", {"dispatch": 6, "greet": 30})
    speaks = "greetings"
    pending = 0

    def start(self):
        self.processor = Processor(self.only_processor(), self.costs)
        self.processor.port.spawn(self._run(), f"greeting[{self.node}]")

    async def _run(self):
        async with self.processor.step("greet"):
            await self.processor.store(SRAM_BASE, self.config.word)
        await self.processor.idle_loop()

    def state(self):
        return [f"greeting[{self.node}]: {self.config.word}"]

    def waiting(self):
        return []
''',
        registry="firmware/programs.py",
        entry='    "greeting": GreetingProgram,\n',
        before='    "work_queue"',
        imports="from .greeting import GreetingProgram\n",
        imports_before="from .program import",
        check="""
from lanikai.firmware.programs import find_program
from lanikai.hdl.config import ConfigError
from lanikai.sim.experiments.measure.gm_hosts import start_gm
from lanikai.sim.systems.cluster import cluster_preset
from support.sim.python_nodes import Nodes

config = cluster_preset("tiny", firmware="greeting")
assert find_program(config.firmware).__module__ == "lanikai.firmware.greeting"
# What changes nothing of the design does not go into the key of its model.
assert config.key() == cluster_preset("tiny").key()
try:
    start_gm(Nodes(config.firmware, config.nic))
except ConfigError as error:
    assert "'greeting': it speaks greetings, the host interface 'gm' needs gm" in str(error)
else:
    raise AssertionError("GM takes every program")
""",
    ),
    "host interface": Extension(
        file="sim/host/greeting.py",
        text='''
"""A library that reads the word of the program `greeting`."""

from lanikai.hdl.nic.ports import SRAM_BASE

from .config import HostConfig
from .interface import HostInterface


class Greeting:
    """The library of one node."""

    def __init__(self, bus, word):
        self.bus, self.word = bus, word

    async def read(self):
        """The word, once it is there."""
        while (found := await self.bus.read(SRAM_BASE)) != self.word:
            await self.bus.sleep(10)
        return found


class GreetingInterface(HostInterface):
    """Reads what the card says."""

    speaks = "greetings"
    Costs = HostConfig

    @classmethod
    def on_node(cls, bus, *, nic, routes, config, costs):
        return Greeting(bus, config.word)
''',
        registry="sim/host/interfaces.py",
        entry='    "greeting": GreetingInterface,\n',
        before='    "kit"',
        imports="from .greeting import GreetingInterface\n",
        imports_before="from .interface import",
        check="""
from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.experiments.measure.hosts import open_programs, start_hosts
from support.sim.python_nodes import Nodes

cluster, started = Nodes("greeting", preset(NicConfig, "tiny")), []

async def main():
    libraries = start_hosts(cluster, "greeting", started=started.append)
    return [await one.read() for one in await open_programs(cluster, "greeting", libraries)]

assert cluster.world.run(main()) == [42, 42]
assert cluster.watched == started
assert all(program.processor.cycles_spent["greet"] == 30 for program in started)
""",
    ),
    "board": Extension(
        file="constraints/icepi_zero.py",
        text='''
"""Icepi Zero, with an LFE5U-25F."""

from .from_amaranth import AmaranthBoard


class IcepiZero(AmaranthBoard):
    """Its two buttons, which are low while they are pressed."""

    platform = "icepi_zero:IcepiZero1_3Platform"
    reset_button = ("button", 0)
    data_button = ("button", 1)
''',
        registry="constraints/boards.py",
        entry='    "icepi-zero": IcepiZero(),\n',
        before='    "ulx3s-85f"',
        imports="from .icepi_zero import IcepiZero\n",
        imports_before="from .ulx3s_85f.board import",
        check="""
from lanikai.sim.synth.device import constraints, device_of, find_board

board = find_board("icepi-zero")
assert device_of(board).options[0] == "--25k" and board.reset.inverted and len(board.leds) == 5
assert 'LOCATE COMP "reset" SITE "C4";' in constraints(board, {"reset": board.reset}, clock="clock")
""",
    ),
}
"""By kind, as the table of `docs/extending.md` has it."""
