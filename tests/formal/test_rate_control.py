"""Proofs of the rate control unit's tree: no flow before its NDT, the smallest NDT first, the NDT rule, the wrap.

They are by induction over commands. A state in which the unit is idle is *in order* when every row of the tree holds
the best of those below it. The induction starts from any state in order, whatever its NDTs and clock. Any command (or
none, or the scan's look) leads in the stated time to a state in order, with NDTs and IDTs as the rule has them. Reset
leads to one, too.

Charging by bytes is proved with an MTU of 8 bytes. It is proved with MTUs of 12 and 20, too, which are no powers of
two, so that the units of charging are 16 and 32 bytes. `tests/hdl/nic` has larger ones in simulation.
"""

import pytest
from amaranth import Array, Cat, Const, Mux, Signal, Value, signed
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.rate.tree import RateTree
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

FLOWS = 3
"""Two levels of two children each; the fourth flow is not there."""
BITS = 10
CHARGED = {"rate_charge": "bytes", "mtu_bytes": 8}
"""Bytes charged, in parts of 8: an NDT has 3 bits of a tick. The IDTs are short, as products are hard to prove."""
STEPS = 8
"""A command's 7 cycles, and the offer after them."""
ALL_STEPS = 10
"""Steps with the state shown, 2 cycles later. Later steps start from a state in order."""


def opened(component, config):
    """The unit with its module, and the content of its memories: `rows[row][child]`, `leaves` and `idts` by flow."""
    dut = component(config, radix_bits=1)
    dut._MustUse__silence = True
    unit = dut.elaborate(None)

    def see(name, count):
        ports = [getattr(unit.submodules, name).read_port(domain="comb") for _ in range(count)]
        unit.d.comb += [port.addr.eq(place) for place, port in enumerate(ports)]
        return [port.data for port in ports]

    rows = list(zip(*(see(f"child_{child}", dut.shape.rows) for child in range(2)), strict=True))
    return dut, unit, rows, see("leaves", FLOWS + 1), see("idts", FLOWS)


def clamp(m, value, low, high, name):
    result = Signal.like(low, name=name)
    m.d.comb += result.eq(Mux(value < low, low, Mux(value > high, high, value)))
    return result


def rate_spec(component, discipline, *, anything=True, **changes):
    """The unit beside the rule (gulati-thesis-2001 3.2.2; nagar-thesis-2001 5.3.3) in numbers that do not wrap.

    Any commands are asked for, several at a time. `anything`: from any state in order; otherwise from reset.
    """
    spec = Spec()
    m = spec.m
    config = preset(
        NicConfig,
        "tiny",
        flows=FLOWS,
        rtc_bits=BITS,
        rate_structure="tree",
        rate_discipline=discipline,
        **changes,
    )
    # Numbers that do not wrap, with a sign; those of NDTs are in parts of a tick.
    part = config.rate_fraction_bits
    shape, wide, bits = signed(BITS + 3), signed(BITS + 3 + part), BITS + part
    stamps = discipline == "virtual_clock"
    longest = config.max_idt_ticks
    most, lag = longest << part, config.max_lag_ticks << part
    dut, unit, rows, leaves, idts = opened(component, config)
    m.submodules.dut = unit
    first = Signal(init=1)
    m.d.sync += first.eq(0)

    # The model: clock, NDTs, IDTs, valid bits. The clock starts anywhere.
    now = Signal(shape, init=1 << BITS)
    start = [spec.constant(wide, f"start_{flow}") for flow in range(FLOWS)]
    clock = spec.constant(BITS, "clock")
    model_now = Mux(first & anything, (1 << BITS) + clock, now)
    m.d.sync += now.eq(model_now + spec.free(1, "step"))
    spec.inputs(dut, "enqueue.valid", "enqueue.payload", "dispatched.valid", "dispatched.payload")
    spec.inputs(dut, "clear.valid", "clear.payload", "select", "write_idt", "write_ndt")
    ahead = spec.free(signed(BITS), "ahead")
    ticks = Signal(BITS)
    fine_now, fine_written = Signal(wide), Signal(wide)
    m.d.comb += [fine_now.eq(model_now << part), fine_written.eq((model_now + ahead) << part)]
    m.d.comb += [dut.rtc.eq(model_now), ticks.eq(model_now + ahead), dut.write_ticks.eq(ticks)]

    idle = (dut._stage == 0) & ~dut._clearing
    m.d.comb += (Assume if anything else Assert)(~first | (dut._idle == idle))
    m.d.comb += Assert(first | (dut._idle == idle))
    asked = [dut.dispatched.valid, dut.clear.valid, dut.write_idt, dut.write_ndt, dut.enqueue.valid]
    ready = [dut.dispatched.ready, dut.clear.ready, dut.write_ready, dut.enqueue.ready]
    # A command while the unit is busy is not taken; a later one starts from a state in order.
    m.d.comb += [Assume(first | ~Cat(asked).any()), Assert(idle | ~Cat(ready).any())]
    if part:
        m.d.comb += Assume(~dut.write_idt | (ticks < 16))
        said, amount = dut.dispatched.payload.bytes, Signal(range(config.charge_unit_bytes + 1))
        most_bytes = Mux(said < config.mtu_bytes, said, config.mtu_bytes)
        m.d.comb += amount.eq(Mux(said == 0, config.charge_unit_bytes, most_bytes))
    state, moves = [], []
    for f in range(FLOWS):
        ndt, idt, valid = (
            Signal(wide, name=f"ndt_{f}", init=1 << bits),
            Signal(BITS - 2, name=f"idt_{f}"),
            Signal(name=f"valid_{f}"),
        )
        if anything:
            known = (
                Mux(first, start[f], ndt),
                Mux(first, spec.constant(4 if part else BITS - 2, f"start_idt_{f}"), idt),
                Mux(first, spec.constant(1, f"start_valid_{f}"), valid),
            )
            # The scan keeps them in range, but for the ticks until it comes round.
            late = lag + (32 << part)
            m.d.comb += Assume(~first | ((start[f] >= fine_now - late) & (start[f] <= fine_now + most)))
        else:
            known = ndt, idt, valid
        state.append(known)

        # The commands of this flow that the cycle takes.
        goes = dut.dispatched.valid & dut.dispatched.ready & (dut.dispatched.payload.flow == f)
        ends = goes & dut.dispatched.payload.last
        cleared = dut.clear.valid & dut.clear.ready & (dut.clear.payload == f)
        writes = dut.write_ready & (dut.select == f)
        sets = writes & dut.write_ndt
        enters = dut.enqueue.valid & dut.enqueue.ready & (dut.enqueue.payload == f)
        looks = idle & dut._look & (dut._scan == f)
        low, high = fine_now - lag, fine_now + most
        before = clamp(m, Mux(sets, fine_written, known[0]), low, high, f"before_{f}")
        new = enters & ~known[2]
        at_once = Mux((new | (goes & (known[1] == 0))) & (before < fine_now), fine_now, before)
        adds = (goes & ~ends) | new if stamps else goes
        added = known[1] * amount if part else known[1]
        after = clamp(m, at_once + Mux(adds, added, 0), low, high, f"after_{f}")
        touched = goes | cleared | (writes & (dut.write_idt | dut.write_ndt)) | enters | looks
        moves.append(touched & (before != known[0]))
        m.d.sync += [
            ndt.eq(Mux(touched, after, known[0])),
            idt.eq(Mux(writes & dut.write_idt, Mux(ticks > longest, longest, ticks), known[1])),
            valid.eq((known[2] & ~cleared & ~ends) | enters),
        ]

    # In order: the memories hold the model's state, and each row the best of the one below.
    good = [~dut._climbing, ~dut._clearing]
    for f, (ndt, idt, valid) in enumerate(state):
        entry = rows[f // 2][f % 2]
        good += [
            leaves[f].time == ndt[:bits],
            leaves[f].valid == valid,
            idts[f] == idt,
            entry.time == ndt[:bits],
            entry.valid == valid,
            ~valid | (entry.flow == f),
        ]
    good += [~leaves[FLOWS].valid, ~rows[1][1].valid]
    top = rows[dut.shape.base[1]]
    for above, (low, high) in ((top[0], rows[0]), (top[1], rows[1]), (dut._root, top)):
        upper = high.valid & (~low.valid | ((high.time - low.time)[:bits].as_signed() < 0))
        good += [
            above.valid == (low.valid | high.valid),
            ~above.valid | (Value.cast(above) == Mux(upper, Value.cast(high), Value.cast(low))),
        ]
    in_order = Cat(good).all()
    if anything:
        m.d.comb += Assume(~first | (idle & in_order))
    m.d.comb += Assert(~idle | in_order)

    # The offer, by the rule itself.
    due = [valid & (Const(1) if stamps else ndt <= fine_now) for ndt, _, valid in state]
    offered = dut.dispatch.flow
    its_ndt = Signal(wide)
    m.d.comb += its_ndt.eq(Array([ndt for ndt, _, _ in state] + [Const(0)])[offered])
    before_it = [
        due[f] & ((state[f][0] < its_ndt) | ((state[f][0] == its_ndt) & (f < offered))) for f in range(FLOWS)
    ]
    acts = Cat(
        dut.dispatched.valid & dut.dispatched.ready,
        dut.clear.valid & dut.clear.ready,
        (dut.write_idt | dut.write_ndt) & dut.write_ready,
        dut.enqueue.valid & dut.enqueue.ready,
        idle & dut._look,
    ).any()
    since = Signal(range(dut.decision_cycles + 1), init=dut.decision_cycles if anything else 0)
    m.d.sync += since.eq(Mux(acts, 1, Mux(since == dut.decision_cycles, since, since + 1)))
    # Until a look has moved what it found too far behind, the offer is by the NDTs from before.
    stale = Signal()
    m.d.sync += stale.eq(Cat(moves).any() | (stale & ~idle))
    m.d.comb += [
        Assert(stale | ~dut.dispatch.valid | (Array([*due, Const(0)])[offered] & ~Cat(before_it).any())),
        Assert((since < dut.decision_cycles) | (idle & (dut.dispatch.valid == Cat(due).any()))),
        Cover(~first & (since == dut.decision_cycles) & dut.dispatch.valid & (offered == 2) & due[0]),
    ]

    # The state that is shown, once two cycles have gone by in which the unit was seen idle.
    seen = Signal(range(3))
    m.d.sync += seen.eq(Mux(seen == 2, 2, seen + 1))
    for f, (ndt, idt, valid) in enumerate(state):
        tick = (ndt + ((1 << part) - 1) >> part)[:BITS]
        shown = (dut.valid == valid) & (dut.ndt == tick) & (dut.idt == idt)
        m.d.comb += Assert(~dut.settled | (seen != 2) | (dut.select != f) | shown)
    m.d.comb += Cover((seen == 2) & dut.settled & (dut.select == 1) & dut.valid)
    return spec


full = pytest.mark.full
TIMEOUT_S = 1200
"""Wall-clock seconds. A proof takes less than a minute and a half of a processor that it has to itself."""


@proof(block="RateTree", states="the flow with the earliest due time is offered, from any state in order")
@pytest.mark.parametrize(
    ("discipline", "steps", "changes"),
    [
        ("idt", STEPS, {}),
        pytest.param("idt", ALL_STEPS, {}, marks=full),
        pytest.param("idt", STEPS, CHARGED, marks=full),
        pytest.param("idt", STEPS, CHARGED | {"mtu_bytes": 12}, marks=full),
        pytest.param("idt", STEPS, CHARGED | {"mtu_bytes": 20}, marks=full),
        pytest.param("virtual_clock", ALL_STEPS, {}, marks=full),
    ],
)
def test_tree_keeps_the_rule_from_any_state_in_order(discipline, steps, changes, tmp_path):
    spec = rate_spec(RateTree, discipline, **changes)
    prove(spec, tmp_path, mode="bmc", depth=steps, anything="dut", timeout_s=TIMEOUT_S)


@proof(
    block="RateTree",
    states="the state after reset is in order, and offers are reached",
    like=test_tree_keeps_the_rule_from_any_state_in_order,
)
@pytest.mark.parametrize("discipline", ["idt", pytest.param("virtual_clock", marks=full)])
def test_reset_is_in_order_and_offers_are_reached(discipline, tmp_path):
    prove(rate_spec(RateTree, discipline, anything=False), tmp_path / "reset", mode="bmc", depth=STEPS)
    prove(rate_spec(RateTree, discipline), tmp_path / "cover", mode="cover", depth=ALL_STEPS, anything="dut")


MUTANTS = [
    (
        "reached(fine(self.config, self.rtc), root.time)",
        "(self.rtc >= root.time)",
        "idt",
    ),  # wrong across the wrap
    ("(stage != 0) & (acts |", "(stage > 4) & (acts |", "idt"),
]
MORE_MUTANTS = [
    ("kept.valid.eq(child.valid & (masked != i))", "kept.valid.eq(child.valid)", "idt"),
    ("with m.If((enters | unregulated) & (lead < 0)):", "with m.If(Const(0)):", "idt"),
    ("with m.If((enters | unregulated) & (lead < 0)):", "with m.If(enters & (lead < 0)):", "idt"),
    ("with m.If((enters | unregulated) & (lead < 0)):", "with m.If(enters & (lead < 0)):", "virtual_clock"),
    ("reached(fine(self.config, self.rtc), root.time)", "reached(self.rtc + 1, root.time)", "idt"),
    ("with m.If((enters | unregulated) & (lead < 0)):", "with m.If(enters | unregulated):", "idt"),
    ("enters = self._enqueued & ~old.valid", "enters = self._enqueued", "idt"),
    ("with m.Elif(lead < least):", "with m.Elif(Const(0)):", "idt"),
    ("Mux(total > most, most, total)", "total", "idt"),
    (
        "(difference(Cat(rival_column, rival.time), Cat(column, carried.time)) < 0)",
        "(difference(rival.time, carried.time) < 0)",
        "idt",
    ),
    ("write.en.eq((self._stage == 5) |", "write.en.eq((self._stage == 4) |", "idt"),
    ("enters | (self._dispatched & ~self._last)", "enters | self._dispatched", "virtual_clock"),
    ("enters | (self._dispatched & ~self._last)", "self._dispatched & ~self._last", "virtual_clock"),
]


@mutants_of(test_tree_keeps_the_rule_from_any_state_in_order)
@pytest.mark.parametrize(
    ("old", "new", "discipline"), [*MUTANTS, *(pytest.param(*mutant, marks=full) for mutant in MORE_MUTANTS)]
)
def test_proof_catches_mutant(old, new, discipline, tmp_path):
    spec = rate_spec(mutate(RateTree, old, new), discipline)
    prove(spec, tmp_path, mode="bmc", depth=STEPS, anything="dut", expect="fail", timeout_s=TIMEOUT_S)


@mutants_of(test_tree_keeps_the_rule_from_any_state_in_order)
@full
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self._amount.eq(amount)", "self._amount.eq(amount - 1)"),
        (
            "reached(fine(self.config, self.rtc), root.time)",
            "reached(self.rtc, whole(self.config, root.time - 1))",
        ),
        ("self._ticks.eq(fine(self.config, self.write_ticks))", "self._ticks.eq(self.write_ticks)"),
    ],
)
def test_proof_of_charged_bytes_catches_mutant(old, new, tmp_path):
    spec = rate_spec(mutate(RateTree, old, new), "idt", **CHARGED)
    prove(spec, tmp_path, mode="bmc", depth=STEPS, anything="dut", expect="fail", timeout_s=TIMEOUT_S)
