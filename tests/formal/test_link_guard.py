"""Proofs of a receiver whose link does anything at all (`link_guard.py`).

Whatever comes on the wires, in any cycle: no flit is written where there is no room. A packet that has begun ends in a
bounded time, while its buffer is emptied.
"""

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.link import FlitLayout, LinkSignature
from lanikai.hdl.link_guard import ReceiveGuard
from lanikai.hdl.link_restart import ReceiveRestart, receive_register
from lanikai.hdl.router.flit import BufferedFlitLayout
from lanikai.hdl.router.vl_buffer import VlBuffer
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

DEPTH, GUARD, LONGEST = 2, 3, 4


def guard_spec(monkeypatch=None, *, vls=2, restart=ReceiveRestart, guard=ReceiveGuard, covers=False):
    """A receiver's register, guard and buffer. The wires are free, and so is what is taken out of the buffer."""
    config = LinkConfig(flit_bits=32, vls=vls, restart=True, guard_cycles=GUARD, guard_packet_flits=LONGEST)
    spec = Spec()
    m = spec.m
    if monkeypatch:
        module = "lanikai.hdl.link_restart"
        monkeypatch.setattr(f"{module}.ReceiveRestart", restart)
        monkeypatch.setattr(f"{module}.ReceiveGuard", guard)
    m.submodules.buffer = buffer = VlBuffer(shape=BufferedFlitLayout(config), vls=vls, depth=DEPTH)
    rx = LinkSignature(config).flip().create(path=("rx",))
    arrived, arrival = Signal(), Signal(FlitLayout(config))
    half = receive_register(m, config, rx, arrived, arrival, buffer)
    valid, restarts, takes = (spec.free(1, name) for name in ("valid", "restarts", "takes"))
    lane, tail = spec.free(config.vl_bits, "lane"), spec.free(1, "tail")
    select = spec.free(vls, "select")
    room = Signal(vls)
    m.d.comb += [
        rx.valid.eq(valid),
        rx.restart.eq(restarts),
        rx.payload.vl.eq(lane),
        rx.payload.tail.eq(tail),
        buffer.write_valid.eq(arrived),
        buffer.write_vl.eq(arrival.vl),
        buffer.write_data.tail.eq(arrival.tail),
        buffer.read_select.eq(select),
        buffer.pop.eq(takes & (buffer.non_empty & select).any()),
        Assume((select & (select - 1)) == 0),
        room.eq(~buffer.full),
        Assert(~arrived | (arrival.vl < vls)),
        Assert(~arrived | room.bit_select(arrival.vl, 1)),
    ]
    # Packets as they stand in the buffer. None stays open for longer than this while its VL's buffer is empty.
    most = 2 * GUARD + 4 * vls + 3
    inside, length = Signal(vls), [Signal(4, name=f"length_{vl}") for vl in range(vls)]
    with m.If(arrived):
        m.d.sync += inside.bit_select(arrival.vl, 1).eq(~arrival.tail)
    for vl in range(vls):
        mine = arrived & (arrival.vl == vl)
        waits = Signal(range(most + 2), name=f"waits_{vl}")
        with m.If(inside[vl] & ~buffer.non_empty[vl] & ~mine):
            m.d.sync += waits.eq(waits + 1)
        with m.Else():
            m.d.sync += waits.eq(0)
        with m.If(mine):
            m.d.sync += length[vl].eq(Mux(arrival.tail, 0, length[vl] + 1))
        # One flit is on its way into the register as a packet is found too long, and one ends it.
        m.d.comb += [Assert(waits <= most), Assert(length[vl] <= LONGEST + 2)]
    if covers:
        ended, refused = Signal(), Signal()
        m.d.sync += [ended.eq(ended | half.close), refused.eq(refused | (half.begun_anew > 1))]
        m.d.comb += [Cover(ended & ~half.busy), Cover(refused)]
    return spec


@proof(
    block="ReceiveGuard", states="whatever comes, nothing is overrun and every packet ends in a bounded time"
)
@pytest.mark.parametrize(
    ("vls", "depth"),
    [(1, 22), pytest.param(2, 26, marks=pytest.mark.full), pytest.param(3, 24, marks=pytest.mark.full)],
)
def test_whatever_comes_nothing_is_overrun_and_every_packet_ends(vls, depth, tmp_path):
    """The depth holds a breach, the end of all packets, and another breach."""
    prove(guard_spec(vls=vls), tmp_path, mode="bmc", depth=depth, timeout_s=1200)


MUTANTS = [
    # A flit without room is taken. A packet that stands still is waited for. One that is too long goes on. A packet
    # that is cut by a breach is not ended while the transmitter does not answer.
    (ReceiveGuard, "room.eq((here & ~self.full).any())", "room.eq(here.any())"),
    (ReceiveGuard, "Cat(refuses, over, stands).any()", "Cat(refuses, over).any()"),
    (ReceiveGuard, "Cat(refuses, over, stands).any()", "Cat(refuses, stands).any()"),
    (ReceiveRestart, "(drains | shut) & quiet.all()", "drains & quiet.all()"),
]


@mutants_of(test_whatever_comes_nothing_is_overrun_and_every_packet_ends)
@pytest.mark.parametrize(
    ("component", "old", "new"),
    [MUTANTS[0], *(pytest.param(*row, marks=pytest.mark.full) for row in MUTANTS[1:])],
)
def test_proof_catches_mutant(component, old, new, tmp_path, monkeypatch):
    broken = mutate(component, old, new)
    ends = {"guard": broken} if component is ReceiveGuard else {"restart": broken}
    spec = guard_spec(monkeypatch, vls=1, **ends)
    prove(spec, tmp_path, mode="bmc", depth=26, expect="fail", timeout_s=600)


@proof(
    block="ReceiveGuard",
    states="what the proof speaks of is reached",
    like=test_whatever_comes_nothing_is_overrun_and_every_packet_ends,
)
@pytest.mark.full
def test_what_the_proof_speaks_of_is_reached(tmp_path):
    prove(guard_spec(covers=True), tmp_path, mode="cover", depth=26, timeout_s=600)
