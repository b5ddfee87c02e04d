"""Proofs of the fetch of work queue elements: each message's own element, once, in order, and never too many.

Exhaustive for so many cycles after power-on, with two classes and two queue pairs.
"""

import pytest
from amaranth import Array, Cat, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.work_fetch import AHEAD, WorkFetch
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = preset(HcaConfig, "tiny").replace(queue_pairs=2)
CLASSES = CONFIG.classes


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i == 0 else [pytest.mark.full]) for i, one in enumerate(found)]


def fetch_spec(component):
    """Any messages, set-ups and buses. The nth element of a class is followed from its message to its taker."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    spec.inputs(dut, "setup_valid", "waiting", "look", "done", "end.ready", "axi.arready", "axi.rvalid")
    axi, setup = dut.axi, dut.setup
    data, error = spec.free(2, "data"), spec.free(1, "error")
    m.d.comb += [
        setup.qp.eq(spec.free(1, "setup_qp")),
        setup.open.eq(spec.free(1, "opens")),
        # Rings of four entries, that of queue pair q from element 4 (q + 1) on.
        setup.send_log2.eq(2),
        setup.send_base.eq((setup.qp + 1) << 2),
        axi.rdata.eq(Cat(data, 0)),
        axi.rresp.eq(error << 1),
    ]
    is_open = Array(Signal(name=f"open_{i}") for i in range(2))
    with m.If(dut.setup_valid):
        m.d.sync += is_open[setup.qp].eq(setup.open)
    # The class queues: the oldest message of each class stands until it is taken.
    qps = Array(Signal(1, name=f"qp_{i}") for i in range(CLASSES))
    indices = Array(Signal(3, name=f"index_{i}") for i in range(CLASSES))
    chosen = Signal()
    next_qp, next_index = spec.free(1, "next_qp"), spec.free(3, "next_index")
    began = Signal()
    m.d.sync += [chosen.eq(dut.select), began.eq(1)]
    m.d.comb += [dut.head.qp.eq(qps[chosen]), dut.head.index.eq(indices[chosen])]
    fetched, done, arrived = (
        Array(Signal(4, name=f"{name}_{i}") for i in range(CLASSES))
        for name in ("fetched", "done", "arrived")
    )
    starts = Signal()
    m.d.comb += starts.eq(dut.take & is_open[dut.head.qp])
    for i in range(CLASSES):
        takes, waited = dut.take & (dut.select == i), Signal(name=f"waited_{i}")
        m.d.sync += waited.eq(dut.waiting[i] & ~takes)
        m.d.comb += Assume(~waited | dut.waiting[i])
        with m.If(takes | ~began):
            m.d.sync += [qps[i].eq(next_qp), indices[i].eq(next_index)]
        ends = dut.done & (dut.look == i)
        m.d.sync += [fetched[i].eq(fetched[i] + (starts & (dut.select == i))), done[i].eq(done[i] + ends)]
        m.d.comb += [
            Assume(~ends | dut.held[i]),
            # Not more than there is room for, the one that is taken in this cycle included.
            Assert((fetched[i] + (starts & (dut.select == i)) - done[i])[:4] <= AHEAD),
            Assert(dut.held[i] == (arrived[i] != done[i])),
            Assert(~(takes & (dut.select == i)) | dut.waiting[i]),
        ]
    # The bus: two beats for each address that it has taken, in order.
    asked, beats, all_fetched = Signal(5), Signal(5), Signal(4)
    asks, beat = axi.arvalid & axi.arready, axi.rvalid & axi.rready
    m.d.sync += [
        asked.eq(asked + (asks << 1)),
        beats.eq(beats + beat),
        all_fetched.eq(all_fetched + starts),
    ]
    m.d.comb += Assume(~axi.rvalid | (beats != asked))
    # The nth element of the class that is followed.
    nth, traffic_class = spec.constant(2, "nth"), spec.constant(1, "its_class")
    known, qp, place, number = Signal(), Signal(1), Signal(2), Signal(4)
    low, high, failed = Signal(2), Signal(2), Signal()
    with m.If(starts & (dut.select == traffic_class) & (fetched[traffic_class] == nth)):
        m.d.sync += [known.eq(1), qp.eq(dut.head.qp), place.eq(dut.head.index), number.eq(all_fetched)]
    mine = known & beat & ((beats >> 1) == number)
    with m.If(mine):
        with m.If(beats[0]):
            m.d.sync += [high.eq(data), failed.eq(failed | error)]
        with m.Else():
            m.d.sync += [low.eq(data), failed.eq(error)]
    # The class of each address, to count what has arrived.
    way = Array(Signal(1, name=f"way_{i}") for i in range(8))
    with m.If(starts):
        m.d.sync += way[all_fetched[:3]].eq(dut.select)
    with m.If(beat & beats[0]):
        m.d.sync += arrived[way[(beats >> 1)[:3]]].eq(arrived[way[(beats >> 1)[:3]]] + 1)
    work = dut.work
    its = Signal()
    ended = dut.end.valid & dut.end.ready
    m.d.comb += [
        its.eq(dut.done & (dut.look == traffic_class) & (done[traffic_class] == nth)),
        Assert(~its | (known & (work.qp == qp) & (work.failed == failed))),
        Assert(~its | (work.element.as_value()[:2] == low)),
        Assert(~its | (work.element.as_value()[128:130] == high)),
        # Its address: that of its place in its queue pair's ring.
        Assert(~(asks & known & ((asked >> 1) == number)) | (axi.araddr == ((((qp + 1) << 2) + place) << 5))),
        Assert(~axi.arvalid | (axi.arlen == 1)),
        Assert(axi.rready),
        # A message of a closed queue pair ends instead, once.
        Assert(~dut.take | (starts != ended)),
        Assert(~ended | (dut.take & (dut.end.payload.qp == dut.head.qp))),
        Assert(~dut.end.valid | ~is_open[dut.head.qp]),
        Cover(its & (nth == 2) & failed),
        Cover(ended & (fetched[0] == 1)),
        Cover(its & (number == 2) & (nth == 0) & traffic_class),
    ]
    return spec


@proof(
    block="WorkFetch",
    states="each message has its own element, once and in order, no class more than its room; closed ones end",
)
def test_elements_are_those_of_their_messages(tmp_path):
    prove(fetch_spec(WorkFetch), tmp_path / "bmc", mode="bmc", depth=14)
    prove(fetch_spec(WorkFetch), tmp_path / "cover", mode="cover", depth=20)


@mutants_of(test_elements_are_those_of_their_messages)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("count != AHEAD for count in taken", "count != AHEAD + 1 for count in taken"),
        ("place.eq(head.index & mask)", "place.eq(head.index)"),
        ("got & (comes.traffic_class == i)", "axi.rvalid & (comes.traffic_class == i)"),
        ("asked.traffic_class.eq(chosen)", "asked.traffic_class.eq(0)"),
        ("error | axi.rresp[1]", "axi.rresp[1]"),
        ("with m.If(table.open):", "with m.If(1):"),
        ("m.d.sync += outs[i].eq(~outs[i])", "m.d.sync += outs[i].eq(outs[i])"),
        ("wants.any() & ~axi.arvalid", "wants.any()"),
        ("read.addr.eq(Cat(outs[self.look], self.look))", "read.addr.eq(Cat(outs[self.look], 0))"),
    ),
)
def test_proof_of_fetches_catches_mutant(old, new, tmp_path):
    prove(fetch_spec(mutate(WorkFetch, old, new)), tmp_path, mode="bmc", depth=14, expect="fail")
