"""The catalogue of blocks: every public component of `hdl/`, read from its docstring, its signature and the proofs.

Ports are those of an instance, so systems of the smallest configurations are built, and the first instance of a class
in them is the one that is shown.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lanikai.hdl
from amaranth.hdl import Fragment, Shape
from amaranth.lib import stream, wiring
from lanikai.constraints.boards import BOARDS
from lanikai.hdl.arbiter.least_recent import LeastRecentArbiter
from lanikai.hdl.axi import Axi4LiteSignature, Axi4Signature
from lanikai.hdl.board.loopback import RouterLoopback
from lanikai.hdl.board.node.config import NodeConfig
from lanikai.hdl.board.node.node import BoardNode
from lanikai.hdl.config import LinkConfig, NicConfig, RouterConfig, preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.fault_link import FaultLink
from lanikai.hdl.hca.hca import Hca
from lanikai.hdl.hca.injection.registry import INJECTION
from lanikai.hdl.hca.injection.self_tuned import SelfTuner
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.link_guard import ReceiveGuard
from lanikai.hdl.monitors import MONITORS
from lanikai.hdl.monitors.flit_tally import BeatTally, tallied
from lanikai.hdl.network import single_router
from lanikai.hdl.network_component import NetworkComponent
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.register_port import ProcessorSignature
from lanikai.hdl.router.allocators import ALLOCATORS
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import Measurement
from lanikai.hdl.traffic.message_node import MessageNode
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.rate_server import RateServer
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from lanikai.sim.fpga.loopback import LoopbackSize
from lanikai.sim.fpga.top import DesignTop
from lanikai.sim.synth.registered_ports import Registered

__all__ = ["blocks", "field", "first_sentence", "instances", "page", "proofs", "proofs_of"]

HERE = Path(__file__).parent
ROOT = HERE.parent
FIELDS = ("Latency", "Throughput")
"""Fields of a block's docstring that the catalogue shows: a sentence or more that begins with the name and a colon."""
MOST_NAMES = 6
"""Most names of interfaces that share their rows; of more, the first and the last one stand there."""
END = r"(?=\s(?:Latency|Throughput|Reset|Source|Longest wait|Memory|Cost):|\n\s*\n|\n- |\Z)"
"""Where a field ends: at the next one, or with its paragraph."""


def systems() -> Iterator[wiring.Component]:
    """Systems that have an instance of every block among them, small ones first."""
    nic, router = preset(NicConfig, "tiny"), preset(RouterConfig, "tiny")
    traffic, plain = (
        TrafficConfig(link=nic.link.replace(restart=False), nodes=4),
        LinkConfig(flit_bits=64, vls=2),
    )
    owners = nic.replace(
        bus_bits=64,
        link=LinkConfig(flit_bits=64, vls=2, restart=True),
        host_dma_queue_entries=3,
        send_queue_entries=2,
        receive_queue_entries=2,
        owners=2,
        completion_queues=2,
        regions=2,
        receive_doorbells="separate",
        doorbell_priorities=2,
        shadow_windows=True,
        pipelined=True,
        rate_structure="tree",
    )
    yield Nic(nic)
    yield Router(router)
    yield from (Router(router.replace(allocator=name)) for name in ALLOCATORS)
    yield from (make_vl_arbiter(name, vls=2, entries=4) for name in VL_ARBITERS)
    yield TwoLevelArbiter(pointer="slow", vls=2, entries=4)
    for name, function in ROUTING.items():
        selection = "routing" if function.changes_vl else "same"
        link = router.link
        if not function.in_order:
            # They need groups of VLs, and room for two places in the route; they keep no order for cards.
            link = link.replace(restart=False, vls=4, flit_bits=64)
        yield Router(router.replace(link=link, routing=name, ports=5, vl_selection=selection))
    plain_router = router.replace(link=router.link.replace(restart=False), output_buffer_flits=4)
    yield Router(plain_router.replace(pipelined=True))
    yield Router(plain_router.replace(routing="table", multicast_nodes=4))
    yield Router(router.replace(vl_selection="any"))
    managed = router.replace(link=LinkConfig(flit_bits=64, vls=16), management=True, routing="table")
    yield Router(managed.replace(activity_counters=True))
    yield NetworkComponent(single_router(2, router=router))
    yield TrafficNode(traffic)
    yield TrafficNode(traffic.replace(watched=True))
    yield MessageNode(traffic)
    yield Measurement(traffic)
    yield RateServer(nic)
    yield FaultLink(plain)
    yield ReceiveGuard(plain.replace(restart=True, guard_cycles=1024))
    yield Nic(owners)
    yield Nic(owners.replace(processors=2, receive_doorbells="none", link=plain, doorbell_priorities=1))
    yield Nic(owners.replace(host_dma_queue_order="timestamp", stamp_flows=2))
    buffered = owners.replace(vl_packets=2, input_buffer_flits=32, link=plain)
    yield Nic(buffered)
    slow = plain.replace(rate_num=1, rate_den=5)
    yield Nic(buffered.replace(vl_arbiter="table_fast", vl_table_entries=4, link=slow))
    adapter = preset(HcaConfig, "tiny")
    yield from (Hca(adapter.replace(injection=name), downstream_flits=4) for name in INJECTION)
    yield Hca(adapter.replace(power_control=True, activity_counters=True), downstream_flits=4)
    yield tallied(Router(plain_router))
    yield BeatTally()
    yield SelfTuner(buffers=64, adapters=16)
    yield Hca(adapter.replace(wqe="posted"), downstream_flits=4)
    yield Router(plain_router.replace(power_budget=64))
    yield from (monitor_of(signature) for signature in MONITORS)
    yield LeastRecentArbiter(size=3)
    yield Registered(LeastRecentArbiter(size=3), name="unit")
    size = LoopbackSize(vls=1, queue_packets=4).design()
    yield DesignTop(RouterLoopback(size), board=BOARDS["versa-5g"], clock_hz=size.clock_hz)
    yield BoardNode(NodeConfig())


def monitor_of(kind: type[Any]) -> wiring.Component:
    """A monitor of an interface of this kind, in a small size."""
    made: dict[type[Any], tuple[Any, dict[str, int]]] = {
        stream.Signature: (stream.Signature(8), {}),
        LinkSignature: (LinkSignature(LinkConfig(vls=2, restart=True)), {"depth": 10}),
        Axi4Signature: (Axi4Signature(data_bits=32), {}),
        Axi4LiteSignature: (Axi4LiteSignature(address_bits=16), {}),
        ProcessorSignature: (ProcessorSignature(), {}),
    }
    signature, parameters = made[kind]
    return MONITORS[kind].of(signature, **parameters)


@cache
def instances() -> dict[type[wiring.Component], wiring.Component]:
    """The first instance of each class of component in `systems`."""
    made: dict[type[wiring.Component], wiring.Component] = {}
    original = wiring.Component.__init__

    def record(self: wiring.Component, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        made.setdefault(type(self), self)

    with patch.object(wiring.Component, "__init__", record):
        for system in systems():
            Fragment.get(system, None)
    return made


@cache
def blocks() -> tuple[type[wiring.Component], ...]:
    """Every public component of `hdl/` by module and name, without the bases that are never made by themselves."""
    found = []
    for info in pkgutil.walk_packages(lanikai.hdl.__path__, "lanikai.hdl."):
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            one = getattr(module, name)
            if inspect.isclass(one) and issubclass(one, wiring.Component) and one.__module__ == info.name:
                found.append(one)
    bases = {base for one in found for base in one.__mro__[1:]}
    return tuple(one for one in found if one in instances() or one not in bases)


def docstring(block: type) -> str:
    """A class's docstring as plain lines."""
    return inspect.cleandoc(block.__doc__ or "")


def first_sentence(block: type) -> str:
    """The sentence that says what a block is: its docstring up to the first full stop that ends a sentence."""
    paragraph = " ".join(docstring(block).split("\n\n")[0].split())
    match = re.match(r"(.+?)\.(?: (?=[A-Z`])(?<!Trans. )|$)", paragraph)
    return (match[1] if match else paragraph).rstrip(":.") + "."


def field(block: type, name: str) -> str | None:
    """The docstring's field `name` (`Latency`), of the block or of the nearest base that has it."""
    for one in block.__mro__:
        if issubclass(one, wiring.Component) and one.__doc__:
            text = docstring(one)
            match = re.search(rf"(?:^|\s){name}:\s+(.+?){END}", text, re.DOTALL | re.MULTILINE)
            if match:
                found = " ".join(match[1].split()).rstrip(" .;")
                return found[0].upper() + found[1:] + "."
    return None


def ports(signature: wiring.Signature) -> Iterator[tuple[str, str, int, str]]:
    """Path, direction, width and dimensions (` x 3`) of every port of a signature."""
    for name, member in signature.members.items():
        times = "".join(f" x {size}" for size in member.dimensions)
        if member.is_port:
            yield name, member.flow.name.lower(), Shape.cast(member.shape).width, times
        else:  # the signature of a member that comes in is flipped already
            inner = ports(member.signature)
            yield from ((f"{name}.{path}", way, width, f"{deep}{times}") for path, way, width, deep in inner)


def port_rows(component: wiring.Component) -> Iterator[str]:
    """The rows of the table of a component's ports. Neighbouring interfaces of one kind and size share their rows."""

    def alike(named: tuple[str, wiring.Member]) -> object:
        name, member = named
        return name if member.is_port else member_rows(*named)

    for _, group in groupby(component.signature.members.items(), key=alike):
        same = list(group)
        names = [f"`{name}`" for name, _ in same]
        label = (
            ", ".join(names)
            if len(names) <= MOST_NAMES
            else f"{names[0]} to {names[-1]} ({len(names)} of them)"
        )
        kind, rows = member_rows(*same[0])
        for way, bits in rows:
            yield f"| {label}{kind} | {way} | {bits} |"


def member_rows(name: str, member: wiring.Member) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind of an interface (empty for a port), and direction and bits of each row of a member."""
    inside = list(ports(wiring.Signature({name: member})))
    if member.is_port:
        _, way, width, times = inside[0]
        return "", ((way, f"{width}{times}"),)
    whole = member.signature if member.flow == wiring.Out else member.signature.flip()
    kind = type(whole).__name__
    rows = []
    for way in ("in", "out"):
        row = ", ".join(
            f"`{path.partition('.')[2]}` {width}{times}" for path, w, width, times in inside if w == way
        )
        if row:
            rows.append((way, row))
    return "" if kind == "Signature" else f" `{kind}`", tuple(rows)


@cache
def proofs() -> dict[str, list[str]]:
    """For each class, the files of proofs that make one or change one (a mutant)."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests" / "formal").glob("test_*.py")):
        tree = ast.parse(path.read_text())
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lanikai.hdl")
            for alias in node.names
        }
        for name in sorted(imported & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
            found.setdefault(name, []).append(f"tests/formal/{path.name}")
    return found


def proofs_of(block: type) -> list[str]:
    """The files of proofs of a block, or of a class of its module of which it is a variant."""
    variants = [one.__name__ for one in block.__mro__ if one.__module__ == block.__module__]
    return sorted({path for name in variants for path in proofs().get(name, [])})


def measured(name: str) -> list[dict[str, Any]]:
    """The measurements of the class `name`: rows of `synthesis.json`."""
    return [row for row in json.loads((HERE / "synthesis.json").read_text())["rows"] if row["class"] == name]


def areas(name: str) -> Iterator[str]:
    """The measured areas of the class `name` in words."""
    for row in measured(name):
        clock = f", {min(row['fmax_mhz'])} MHz" if row["fmax_mhz"] else ""
        memory = f", {row['bram']} block RAM" if row.get("bram") else ""
        yield f"{row['lut4']:,} LUT4, {row['ff']:,} FF{memory}{clock} ({row['label']})"


def path_of(block: type) -> str:
    """The block's file."""
    return str(Path(inspect.getfile(block)).resolve().relative_to(ROOT))


def entry(block: type[wiring.Component]) -> Iterator[str]:
    """The lines of one block."""
    name = block.__name__
    yield from (f"### {name}", "", f"{first_sentence(block)} (`{path_of(block)}`)", "")
    rows = list(port_rows(instances()[block]))
    if rows:
        yield from ("| port | direction | bits |", "|---|---|---|", *rows, "")
    for title in FIELDS:
        yield f"- {title}: {field(block, title) or 'not said.'}"
    yield from (f"- Area: {area}" for area in areas(name))
    if proofs_of(block):
        yield "- Proof: " + ", ".join(f"`{path}`" for path in proofs_of(block))
    yield ""


def page() -> str:
    """The catalogue: a table of all blocks, then each with its ports."""
    every: Sequence[type[wiring.Component]] = blocks()
    folders = sorted({str(Path(path_of(block)).parent) for block in every})
    lines = [
        "# Blocks",
        "",
        "*Made by `docs/generate.py` from the code.* This page has every public component of `hdl/`, with its ports",
        "in a small configuration. That is the first instance in the systems of `docs/catalogue.py`, most of them",
        "`tiny`. Clock and reset are left out. Areas are those of [synthesis.md](synthesis.md).",
        "",
    ]
    for folder in folders:
        lines += [f"- [{folder}](#{re.sub(r'[^a-z0-9_-]', '', folder)})"]
    lines.append("")
    for folder in folders:
        inside = [block for block in every if str(Path(path_of(block)).parent) == folder]
        lines += [f"## {folder}", "", "| block | what it does | area | proof |", "|---|---|---|---|"]
        for block in inside:
            name = block.__name__
            area = next((f"{row['lut4']:,} LUT4" for row in measured(name)), "")
            proof = "yes" if proofs_of(block) else ""
            lines.append(f"| [{name}](#{name.lower()}) | {first_sentence(block)} | {area} | {proof} |")
        lines.append("")
        for block in inside:
            lines += entry(block)
    return "\n".join(lines).rstrip() + "\n"
