"""A random run of a network of routers with traffic nodes, recorded at the network's ports, and its replay.

The recording is of the whole system: sources, routers, sinks, measurement. The replay is of the network alone, from the
inputs that were recorded, by the same simulator or another one, from power-on or after a reset.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth import Shape
from amaranth.lib.wiring import In
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.network import Network, chain, mesh
from lanikai.hdl.network_component import NetworkComponent
from lanikai.hdl.traffic.measurement import Measurement
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.ports import MEASUREMENT, MEASUREMENT_NODE, REQUEST
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.sim.build import compiler
from lanikai.sim.inside.watchdog import WATCHDOG_BITS, Watchdog
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from lanikai.sim.systems.traffic_network import TrafficNetwork, _pack
from lanikai.sim.systems.traffic_top import TrafficTop

from support.hdl.on_icarus import Pin, bench_text

__all__ = [
    "Recorded",
    "by_verilator",
    "loose",
    "masked",
    "record",
    "replay",
    "scattered",
    "small_network",
    "tiny_network",
]

Simulator = Callable[[str, str, list[int], Path], list[str]]
"""As `on_icarus.by_icarus`."""


def tiny_network() -> Network:
    """Two routers with a node each."""
    return chain(2, router=RouterConfig(link=LinkConfig(flit_bits=32, vls=2), ports=3))


def small_network(rng: random.Random) -> Network:
    """A mesh of 2 x 2 routers with a random configuration."""
    link = LinkConfig(
        flit_bits=rng.choice((32, 64)), vls=rng.choice((2, 3, 4)), delay_cycles=rng.choice((0, 1))
    )
    router = RouterConfig(
        link=link,
        ports=5,
        input_buffer_flits=rng.choice((4, 10)),
        output_buffer_flits=rng.choice((3, 10)),
        allocator=rng.choice(("separable", "islip", "wavefront")),
    )
    return mesh(2, 2, router=router)


class _Words(TrafficNetwork):
    """The set-up of a traffic network as the words of its request port."""

    def __init__(self, config: TrafficNetworkConfig, seed: int) -> None:
        self.config, self.seed, self._levels = config, seed, {}
        self.network, self.traffic, self.traffic_seed = config.network, config.traffic, seed
        self.words: list[int] = []

    def say(self, text: str) -> None:
        """Nobody listens."""

    async def write(self, words: Iterable[Any]) -> None:
        """Keep the words."""
        for (node, address), word in words:
            self.words.append(_pack(node=node, address=address, data=word, write=1))


def _requests(config: TrafficNetworkConfig, rng: random.Random, cycles: int) -> list[int]:
    """The words of the request port: routes, seeds, a class of random traffic, and the start of a window."""
    system = _Words(config, rng.getrandbits(31))

    async def set_up() -> None:
        await system.start_nodes()
        lanes = config.network.router.link.vls
        await system.set_classes([ClassSetup(load=0.6, packet_flits=rng.randrange(5, 20), vl_count=lanes)])
        settings = {
            "WARMUP": 0,
            "WINDOW": cycles,
            "LIMIT": 500,
            "CONTROL": MEASUREMENT["CONTROL"].pack(start=1),
        }
        place = {name: (MEASUREMENT_NODE, MEASUREMENT[name].offset) for name in settings}
        await system.write((place[name], word) for name, word in settings.items())

    asyncio.run(set_up())
    return system.words


@dataclass(frozen=True)
class Recorded:
    """A run at a network's ports: the network's Verilog and pins; inputs and outputs, a number a cycle."""

    verilog: str
    pins: list[Pin]
    inputs: list[int]
    outputs: list[int]


def record(network: Network, rng: random.Random, *, cycles: int, folder: Path, by: Simulator) -> Recorded:
    """Run the network with its traffic nodes for `cycles` and more, and record it."""
    config = TrafficNetworkConfig(network=network, composed=False, histogram_sub_bits=0)
    traffic = config.traffic
    network_text = "\n".join([network.verilog("network"), *network.block_verilog().values()])
    parts = {
        "traffic_node": TrafficNode(traffic),
        "measurement": Measurement(traffic),
        "watchdog": Watchdog(),
        "bench_top": TrafficTop(network, traffic),
    }
    whole = "\n".join([network_text, *(to_verilog(part, name=name) for name, part in parts.items())])
    component = NetworkComponent(network)
    pins: list[Pin] = [
        ("__".join(str(step) for step in path), Shape.cast(member.shape).width, member.flow == In)
        for path, member, _ in component.signature.flatten(component)
    ]
    pins = [pin for pin in pins if pin[0].startswith("node")]
    top: list[Pin] = [("request", REQUEST.size, True), ("watchdog_limit", WATCHDOG_BITS, True)]
    words = [word << WATCHDOG_BITS for word in _requests(config, rng, cycles)] + [0] * (cycles + 300)
    bench = bench_text("bench_top", top, clock=("clk",), inner=[_at_node(name) for name, _, _ in pins])
    lines = by(bench, whole, words, folder)
    inputs, outputs = [], []
    for line in lines:
        # Before the first set-up nothing is unknown, but a wire that no valid flit stands on may be.
        word, split = int(re.sub("[xXzZ]", "0", line), 16), {True: 0, False: 0}
        left = sum(bits for _, bits, _ in pins)
        for _, bits, way in pins:
            left -= bits
            split[way] = split[way] << bits | word >> left & (1 << bits) - 1
        inputs.append(split[True])
        outputs.append(split[False])
    return Recorded(network_text, pins, inputs, outputs)


def _at_node(pin: str) -> str:
    """The wire in the top module at a pin of the network: it has the node's name for that link."""
    node, _, rest = pin.partition("_")
    end, _, member = rest.partition("__")
    return f"{node}_{'tx' if end == 'rx' else 'rx'}__{member}"


def replay(
    run: Recorded, folder: Path, by: Simulator, *, verilog: str = "", reset_cycles: int = 0
) -> list[int]:
    """The outputs of the network alone with the recorded inputs, by a simulator. With `reset_cycles` it is in reset for
    so long before, and the outputs of those cycles are left out. `verilog`: its text, if it is another one."""
    bench = bench_text("network", run.pins, reset_cycles=reset_cycles)
    lines = by(bench, verilog or run.verilog, [0] * reset_cycles + run.inputs, folder)
    return [int(re.sub("[xXzZ]", "0", line), 16) for line in lines[reset_cycles:]]


def masked(run: Recorded, outputs: list[int]) -> list[list[tuple[str, int]]]:
    """The outputs of each cycle that mean something: a flit or a credit's VL only where it is valid."""
    found = []
    pins = [(name, bits) for name, bits, way in run.pins if not way]
    total = sum(bits for _, bits in pins)
    for word in outputs:
        values, left = {}, total
        for name, bits in pins:
            left -= bits
            values[name] = word >> left & (1 << bits) - 1
        found.append(
            [
                (name, value)
                for name, value in values.items()
                if not (
                    (name.endswith("__payload") and not values[name.replace("payload", "valid")])
                    or (name.endswith("__credit_vl") and not values[name.replace("_vl", "_valid")])
                )
            ]
        )
    return found


_REGISTER = re.compile(
    r"^(  (?:output )?reg (\[\d+:\d+\] )?(\S+ ?|\\\S+ ))= (\d+)'[hd][0-9a-f]+;$", re.MULTILINE
)
_READ = re.compile(r"^(  reg (\[\d+:\d+\] )?(_\d+_));$", re.MULTILINE)
_ROWS = re.compile(r"^    (\S+ ?)\[(\d+)\] = (\d+)'h[0-9a-f]+;$", re.MULTILINE)
_CONTENTS = re.compile(r"^  initial begin\n(    \S+ ?\[\d+\] = \d+'h[0-9a-f]+;\n)+  end\n", re.MULTILINE)


def scattered(verilog: str, rng: random.Random) -> str:
    """The Verilog with random initial values of all registers and rows of memories."""

    def number(bits: int) -> str:
        return f"{bits}'h{rng.getrandbits(bits):x}"

    def width(text: str | None) -> int:
        return int(text[1:].partition(":")[0]) + 1 if text else 1

    text = _REGISTER.sub(lambda found: f"{found[1]}= {number(int(found[4]))};", verilog)
    text = _READ.sub(lambda found: f"{found[1]} = {number(width(found[2]))};", text)
    return _ROWS.sub(lambda found: f"    {found[1]}[{found[2]}] = {number(int(found[3]))};", text)


def loose(verilog: str) -> str:
    """The Verilog without any initial value: what a simulator then begins with is its own affair."""
    return _CONTENTS.sub("", _REGISTER.sub(lambda found: f"{found[1].rstrip()};", verilog))


def by_verilator(seed: int | None = None) -> Simulator:
    """Verilator. With a seed all that has no initial value begins at random."""

    def run(bench: str, verilog: str, inputs: list[int], folder: Path) -> list[str]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "all.v").write_text(bench + verilog)
        (folder / "inputs").write_text("".join(f"{word:x}\n" for word in inputs))
        root, cxx = compiler._verilator_root(), compiler.compiler()
        options = ["--x-initial", "unique", "--x-assign", "unique"] if seed is not None else []
        values = [f"+verilator+seed+{seed}", "+verilator+rand+reset+2"] if seed is not None else []
        # Two steps: make is given its variables as they are, with spaces in their values.
        written = [
            str(root / "bin" / "verilator_bin"), "--cc", "--exe", "--main", "--timing", "-Wno-fatal", "-O0", *options,
            "-CFLAGS", "-std=gnu++20", "--top-module", "bench", "-o", "model", "all.v",
        ]  # fmt: skip
        # One unit and no optimization: the compiler takes longer than the run.
        quick = ["VM_PARALLEL_BUILDS=0", *(f"OPT_{one}=-O0" for one in ("FAST", "SLOW", "GLOBAL"))]
        made = ["make", "-C", "obj_dir", "-f", "Vbench.mk", *compiler._make_variables(cxx), *quick]
        environment = {**os.environ, "VERILATOR_ROOT": str(root)}
        for command in ([] if (folder / "obj_dir" / "model").exists() else [written, made]) + [
            ["obj_dir/model", *values]
        ]:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, env=environment
            )
            if done.returncode:
                raise AssertionError(
                    f"{command[0]}: {done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:]}"
                )
        return (folder / "outputs").read_text().split()

    return run
