"""Proofs of the packets that an adapter sends: their frame, their payload, and the record of each.

Exhaustive for so many cycles after power-on, of packets of up to three payload flits. The CRC itself is not looked at.
"""

import pytest
from amaranth import Cat, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.layout import TRAILER_LAYOUT
from lanikai.hdl.hca.packet_sender import PacketSender
from lanikai.hdl.packet import HEADER_LAYOUT, Kind
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = preset(HcaConfig, "tiny")
MOST_BYTES = 48
FIELDS = {
    "qp": 2,
    "destination": 2,
    "destination_qp": 2,
    "vl": 1,
    "traffic_class": 1,
    "kind": 2,
    "number": 2,
    "route": 3,
    "total_bytes": 3,
    "tag": 2,
    "immediate": 2,
    "bytes": 6,
    "first": 1,
    "last": 1,
    "with_immediate": 1,
    "signaled": 1,
}
"""Fields of a packet that are free, and how many low bits of each."""


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i == 0 else [pytest.mark.full]) for i, one in enumerate(found)]


def packets_spec(component):
    """Any packets and beats, and a port that takes flits whenever it likes: what each flit is."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    spec.inputs(dut, "packet.valid", "beat.valid", "beat.payload.failed", "send.ready")
    packet, beat, flit = dut.packet.payload, dut.beat.payload, dut.send.payload
    # A byte of the beat at any place, beside which nothing is looked at.
    place, byte = spec.constant(4, "place"), spec.free(8, "byte")
    m.d.comb += [
        beat.data.eq(byte << (place << 3)),
        dut.node.eq(spec.constant(2, "node")),
        *(packet[name].eq(spec.free(bits, name)) for name, bits in FIELDS.items()),
        Assume(packet.bytes <= MOST_BYTES),
    ]
    waits, before = Signal(), Signal.like(packet)
    m.d.sync += [waits.eq(dut.packet.valid & ~dut.packet.ready), before.eq(packet)]
    m.d.comb += Assume(~waits | (dut.packet.valid & (packet == before)))
    # Flits of the packet that have gone, payload flits that it has, and whether a beat of its message had an error.
    # Each class has its own message, and they take turns.
    gone, payload, moves = Signal(4), Signal(4), Signal()
    failed, failures = Signal(), [Signal(name=f"failed_{i}") for i in range(CONFIG.classes)]
    m.d.comb += [
        moves.eq(dut.send.valid & dut.send.ready),
        payload.eq((packet.bytes + 15) >> 4),
    ]
    is_head, is_tail, is_payload = gone == 0, gone == payload + 1, (gone != 0) & (gone <= payload)
    takes = dut.beat.valid & dut.beat.ready
    with m.If(moves):
        m.d.sync += gone.eq(Mux(is_tail & ~is_head, 0, gone + 1))
    for number, failure in enumerate(failures):
        with m.If(packet.traffic_class == number):
            m.d.comb += failed.eq(failure)
            with m.If(takes & beat.failed):
                m.d.sync += failure.eq(1)
            with m.Elif(moves & is_head & packet.first):
                m.d.sync += failure.eq(0)
    header, trailer = Signal(HEADER_LAYOUT), Signal(TRAILER_LAYOUT)
    here = Signal(7)  # the place of the byte in the packet's payload
    m.d.comb += [
        header.eq(flit.data),
        trailer.eq(flit.data),
        here.eq(Cat(place, (gone - 1)[:3])),
    ]
    sends, record = dut.send.valid, dut.record
    immediate = packet.last & packet.with_immediate
    m.d.comb += [
        # The frame: a header, as many flits as the length says, a trailer. All of one VL, and no other flits.
        Assert(~sends | dut.packet.valid),
        Assert(~sends | (flit.head == is_head)),
        Assert(~sends | (flit.tail == (is_tail & ~is_head))),
        Assert(~sends | (flit.vl == packet.vl)),
        Assert(dut.packet.ready == (moves & flit.tail)),
        # A beat for each payload flit, and a header only when the first one is there.
        Assert(takes == (moves & is_payload)),
        Assert(~(sends & is_head) | dut.beat.valid | (packet.bytes == 0)),
        Assert(
            ~(sends & is_payload) | (flit.data.word_select(place, 8) == Mux(here < packet.bytes, byte, 0))
        ),
        Assert(
            ~(sends & is_head)
            | (
                (header.length == packet.bytes)
                & (header.destination == packet.destination)
                & (header.route == packet.route)
                & (header.source == dut.node)
                & (header.flow[:8] == packet.destination_qp)
                & (header.sequence == Cat(packet.qp, packet.number))
                & (header.kind == Mux(packet.last, packet.kind, Kind.DATA))
            )
        ),
        Assert(
            ~(sends & flit.tail)
            | (
                (trailer.total_bytes == packet.total_bytes)
                & (trailer.first == packet.first)
                & (trailer.last == packet.last)
                & (trailer.with_immediate == immediate)
                & (trailer.immediate == Mux(immediate, packet.immediate, 0))
            )
        ),
        # The record: with the tail, of this packet.
        Assert(dut.record_valid == (moves & flit.tail)),
        Assert(
            ~dut.record_valid
            | (
                (dut.record_vl == packet.vl)
                & (record.flits == payload + 2)
                & (record.last == packet.last)
                & (record.failed == failed)
                & (record.qp == packet.qp)
                & (record.tag == packet.tag)
                & (record.signaled == packet.signaled)
                & (record.traffic_class == packet.traffic_class)
                & (record.bytes == packet.total_bytes)
            )
        ),
        Cover(dut.record_valid & (payload == 3)),
        Cover(dut.record_valid & failed & packet.last & ~packet.first),
        # A message goes on that has failed, behind a packet of another class.
        Cover(dut.record_valid & failures[1] & ~failed & (packet.bytes != 0)),
    ]
    return spec


@proof(
    block="PacketSender",
    states="header, payload and trailer are as the packet says, a beat for each payload flit, a record with each tail",
)
def test_packets_have_their_frame(tmp_path):
    prove(packets_spec(PacketSender), tmp_path / "bmc", mode="bmc", depth=12)
    prove(packets_spec(PacketSender), tmp_path / "cover", mode="cover", depth=12)


@mutants_of(test_packets_have_their_frame)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("with m.If(left == 1):", "with m.If(left <= 2):"),
        ("(left == 1) & (odd != 0)", "(odd != 0)"),
        ("Mux((left == 1) & (odd != 0), (1 << (odd << 3)) - 1, (1 << BUS_BITS) - 1)", "(1 << BUS_BITS) - 1"),
        ("(beat.valid | (packet.bytes == 0))", "1"),
        ("beat.ready.eq(send.ready)", "beat.ready.eq(1)"),
        ("trailer.last.eq(packet.last)", "trailer.last.eq(1)"),
        (
            "trailer.with_immediate.eq(packet.last & packet.with_immediate)",
            "trailer.with_immediate.eq(packet.with_immediate)",
        ),
        ("header.length.eq(packet.bytes)", "header.length.eq(packet.total_bytes)"),
        (
            "self.packet.ready.eq(1), self.record_valid.eq(1)",
            "self.packet.ready.eq(1), self.record_valid.eq(packet.last)",
        ),
        ("failures.bit_select(packet.traffic_class, 1) & ~packet.first", "failures.any() & ~packet.first"),
        ("failures.bit_select(packet.traffic_class, 1) & ~packet.first", "0"),
        (
            "failures.bit_select(packet.traffic_class, 1) & ~packet.first",
            "failures.bit_select(packet.traffic_class, 1)",
        ),
        ("failures.bit_select(packet.traffic_class, 1).eq(failed)", "failures.eq(failed.replicate(2))"),
    ),
)
def test_proof_of_packets_catches_mutant(old, new, tmp_path):
    prove(packets_spec(mutate(PacketSender, old, new)), tmp_path, mode="bmc", depth=12, expect="fail")
