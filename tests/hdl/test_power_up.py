"""Whatever registers and memories hold at power-up, a reset makes the same of it; and one simulator's run is another's.

Icarus Verilog is given texts in which every register and every row of every memory begins with a random value. The full
run has Verilator's own random values as well. Outputs are compared in every cycle after a reset: a flit, or the VL of a
credit, where it is valid.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from amaranth import Shape
from amaranth.lib.wiring import In
from lanikai.hdl.arbiter import ARBITERS
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.fault_link import FaultLink
from lanikai.hdl.link_guard import ReceiveGuard
from lanikai.hdl.link_restart import ReceiveRestart, TransmitRestart
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from support.hdl.on_icarus import NO_ICARUS, bench_text, by_icarus, icarus
from support.hdl.recorded_network import (
    Recorded,
    by_verilator,
    loose,
    masked,
    record,
    replay,
    scattered,
    small_network,
    tiny_network,
)

pytestmark = [
    pytest.mark.skipif(icarus() is None, reason=NO_ICARUS),
    pytest.mark.xdist_group("recorded network"),
]
RESET_CYCLES = 2
LINK = LinkConfig(vls=3, restart=True, guard_cycles=20)
BLOCKS = {
    **{f"arbiter {name}": lambda kind=kind: kind(size=5) for name, kind in ARBITERS.items()},
    **{f"VL arbiter {name}": lambda kind=kind: kind(vls=4) for name, kind in VL_ARBITERS.items()},
    "credits": lambda: Credits(vls=3, depth=4, restarts=True, guarded=True),
    "receive guard": lambda: ReceiveGuard(LINK),
    "receive restart": lambda: ReceiveRestart(LINK),
    "transmit restart": lambda: TransmitRestart(LINK),
    "fault link": lambda: FaultLink(LINK),
}
"""Blocks all of whose outputs mean something in every cycle."""


def run_block(
    name: str, seed: int, folder: Path, *, change: bool, reset_cycles: int = RESET_CYCLES
) -> list[str]:
    """The outputs of a block after a reset, with random inputs. `change`: it began with random values."""
    block = BLOCKS[name]()
    pins = [
        ("__".join(str(step) for step in path), Shape.cast(member.shape).width, member.flow == In)
        for path, member, _ in block.signature.flatten(block)
    ]
    verilog = to_verilog(block, name="block")
    if change:
        verilog = scattered(verilog, random.Random(seed))
    rng = random.Random(seed)
    bits = sum(width for _, width, way in pins if way)
    inputs = [0] * reset_cycles + [rng.getrandbits(bits) & rng.getrandbits(bits) for _ in range(300)]
    clock = ("clk", "rst") if "input clk;" in verilog else ()
    bench = bench_text("block", pins, clock=clock, reset_cycles=reset_cycles)
    return by_icarus(bench, verilog, inputs, folder)[reset_cycles:]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n.startswith("arbiter") else pytest.mark.full) for n in BLOCKS]
)
def test_a_block_does_the_same_after_a_reset_whatever_it_began_with(name, tmp_path):
    zeros = run_block(name, 1, tmp_path / "zeros", change=False)
    assert len(set(zeros)) > 3
    for seed in (1, 2):
        assert run_block(name, seed, tmp_path / f"random{seed}", change=True) == run_block(
            name, seed, tmp_path / f"zeros{seed}", change=False
        )


def test_without_the_reset_random_values_are_seen(tmp_path):
    """So they are there, and the comparison finds them."""
    name = "arbiter round_robin"
    seen = [
        run_block(name, seed, tmp_path / f"{seed}{change}", change=change, reset_cycles=0)
        for seed in range(2)
        for change in (False, True)
    ]
    assert any(zeros != values for zeros, values in zip(seen[::2], seen[1::2], strict=True))


def recorded(seed: int, cycles: int, folder: Path, by=by_icarus) -> Recorded:
    print(f"seed {seed}")
    rng = random.Random(seed)
    network = small_network(rng) if cycles > 500 else tiny_network()
    return record(network, rng, cycles=cycles, folder=folder, by=by)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Recorded:
    """A short run, recorded by Icarus."""
    return recorded(3, 200, tmp_path_factory.mktemp("recorded"))


def flits(run: Recorded, outputs: list[int]) -> int:
    """Flits that came out of the network."""
    return sum(
        value for cycle in masked(run, outputs) for name, value in cycle if name.endswith("_tx__valid")
    )


def test_a_network_alone_does_what_it_did_among_its_nodes(run, tmp_path):
    assert replay(run, tmp_path / "alone", by_icarus) == run.outputs
    assert flits(run, run.outputs) > 100


def test_a_network_does_the_same_after_a_reset_whatever_it_began_with(run, tmp_path):
    zeros = masked(run, replay(run, tmp_path / "zeros", by_icarus, reset_cycles=RESET_CYCLES))
    verilog = scattered(run.verilog, random.Random(4))
    found = replay(run, tmp_path / "random", by_icarus, reset_cycles=RESET_CYCLES, verilog=verilog)
    assert masked(run, found) == zeros == masked(run, run.outputs)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_verilator_recorded_is_the_same_on_icarus(seed, tmp_path):
    run = recorded(seed, 2000, tmp_path / "recorded", by_verilator())
    assert flits(run, run.outputs) > 1000
    assert replay(run, tmp_path / "icarus", by_icarus) == run.outputs


@pytest.mark.full
def test_a_network_does_the_same_after_a_reset_from_any_state_of_verilators(tmp_path):
    run = recorded(5, 2000, tmp_path / "recorded")
    for seed in range(1, 7):  # one model for all seeds
        found = replay(
            run,
            tmp_path / "random",
            by_verilator(seed),
            reset_cycles=RESET_CYCLES,
            verilog=loose(run.verilog),
        )
        assert masked(run, found) == masked(run, run.outputs), f"seed {seed}"


def test_nothing_keeps_an_initial_value_that_was_to_be_taken_away(run):
    """But for what starts each block of a simulator, by Yosys and `to_verilog`, which is no register of the design."""
    left = [
        line
        for line in loose(run.verilog).splitlines()
        if ("initial" in line or (" reg " in f" {line}" and "=" in line))
        and "dump_module" not in line
        and "lanikai$starter" not in line
    ]
    assert left == []
