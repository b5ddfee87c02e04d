"""Whatever a card's registers and memories hold at power-up, a reset makes the same card of it.

A payload goes from host memory over the link and back, in Amaranth's simulator. Its inputs are then given to the card's
Verilog by Icarus, after a reset. Every register and every row of a memory began with zero, or with a random value.
Outputs are compared in every cycle, where their valids say that they mean something.
"""

import random
import re

import pytest
from amaranth import Shape, Value
from amaranth.lib import wiring
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.hdl.packet import Header
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from support.hdl.on_icarus import NO_ICARUS, bench_text, by_icarus, icarus
from support.hdl.recorded_network import scattered

from .test_nic import Card

pytestmark = pytest.mark.skipif(icarus() is None, reason=NO_ICARUS)
RESET_CYCLES = 2


def card_of(name):
    """The preset. Its link cannot be reset alone: the other end of the replay, a recording, would not answer."""
    config = preset(NicConfig, name)
    return config.replace(link=config.link.replace(restart=False))


VALID = {
    "tx__payload": "tx__valid",
    "rx__credit_vl": "rx__credit_valid",
    **{f"dma__aw{name}": "dma__awvalid" for name in ("id", "addr", "len", "size", "burst")},
    **{f"dma__ar{name}": "dma__arvalid" for name in ("id", "addr", "len", "size", "burst")},
    **{f"dma__w{name}": "dma__wvalid" for name in ("strb", "last")},
    "host__bresp": "host__bvalid",
    "host__rdata": "host__rvalid",
    "host__rresp": "host__rvalid",
}
"""Outputs that mean something only while another one is set."""


class Recorded(Card):
    """A card that notes its pins in every cycle: a word of inputs and a word of outputs."""

    def __init__(self, config):
        super().__init__(config, seed=1, stall=0.3)
        self.pins, values = [], []
        for path, member, value in self.nic.signature.flatten(self.nic):
            name, bits = "__".join(map(str, path)), Shape.cast(member.shape).width
            self.pins.append((name, bits, member.flow == wiring.In))
            values.append(Value.cast(value))
        self.words = {True: [], False: []}

        async def note(ctx):
            async for _, _, *found in ctx.tick().sample(*values):
                words = {True: 0, False: 0}
                for (_, bits, way), value in zip(self.pins, found, strict=True):
                    words[way] = words[way] << bits | value & (1 << bits) - 1
                for way, word in words.items():
                    self.words[way].append(word)

        self.simulator.add_process(note)

    def row(self, word, way):
        """The values of the inputs or the outputs by name."""
        found = {}
        for name, bits, mine in reversed(self.pins):
            if mine == way:
                found[name], word = word & (1 << bits) - 1, word >> bits
        return found

    def meant(self, words):
        """The outputs of each cycle that mean something."""
        rows, reads = [], False
        for taken, word in zip(self.words[True], words, strict=True):
            row, inputs = self.row(word, False), self.row(taken, True)
            for name, valid in VALID.items():
                if not row[valid]:
                    row.pop(name)
            # A byte of data is written where its strobe is set.
            strobes, data = row.get("dma__wstrb", 0), row.pop("dma__wdata")
            row["written"] = [data >> 8 * i & 0xFF for i in range(8) if strobes >> i & 1]
            fields = {
                name: row["processor__response"] >> field.offset & (1 << field.width) - 1
                for name, field in PROCESSOR_RESPONSE
            }
            row["processor__response"] = {n: v for n, v in fields.items() if n != "data" or reads}
            request = {
                name: inputs["processor__request"] >> field.offset & (1 << field.width) - 1
                for name, field in PROCESSOR_REQUEST
            }
            reads = bool(request["valid"] and not request["write"] and fields["ready"])
            rows.append(row)
        return rows


def run(config, size):
    """A card that has sent a payload to itself, recorded."""
    card, header = Recorded(config), Header(route=1, length=size, sequence=9)
    card.memory[0x1004 : 0x1004 + size] = card.rng.randbytes(size)
    send_at, receive_at = 0x100, 0x300

    async def script(ctx, c):
        await c.write(ctx, "RECEIVE_ADDRESS", address=receive_at)
        await c.write(ctx, "RECEIVE_CONTROL", bytes=config.mtu_bytes)
        await c.dma(ctx, host=0x1004, sram=send_at + 16, size=size, to_host=0)
        for word in range(4):
            await c.access(ctx, SRAM_BASE + send_at + 4 * word, header.pack() >> 32 * word & 0xFFFFFFFF)
        await c.write(ctx, "SEND_ADDRESS", address=send_at)
        await c.write(ctx, "SEND_CONTROL", bytes=size, vl=1)
        await c.event(ctx, "send")
        await c.event(ctx, "receive")
        await c.dma(ctx, host=0x2008, sram=receive_at + 16, size=size, to_host=1)
        await c.host.read(ctx, SRAM_BASE + receive_at + 16)

    card.run(script)
    assert card.memory[0x2008 : 0x2008 + size] == card.memory[0x1004 : 0x1004 + size]
    return card


def replayed(card, folder, seed=None, reset_cycles=RESET_CYCLES):
    """The words of outputs after a reset, by Icarus. With a seed the card began with random values."""
    text = to_verilog(card.nic, name="card")
    if seed is not None:
        text = scattered(text, random.Random(seed))
    bench = bench_text("card", card.pins, reset_cycles=reset_cycles)
    lines = by_icarus(bench, text, [0] * reset_cycles + card.words[True], folder)
    return [int(re.sub("[xXzZ]", "0", line), 16) for line in lines[reset_cycles:]]


def first_difference(one, other):
    """The first cycle and output that differ, or None."""
    for cycle, (a, b) in enumerate(zip(one, other, strict=True)):
        for name in a.keys() | b.keys():
            if a.get(name) != b.get(name):
                return f"cycle {cycle}: {name}: {a.get(name)}, {b.get(name)}"
    return None


@pytest.mark.parametrize(
    ("name", "size"), [("tiny", 61), pytest.param("lanai7", 200, marks=pytest.mark.full)]
)
def test_a_card_does_the_same_after_a_reset_whatever_it_began_with(name, size, tmp_path):
    card = run(card_of(name), size)
    meant = card.meant(card.words[False])
    assert sum(row["tx__valid"] for row in meant) > 5 and any(row["written"] for row in meant)
    assert (why := first_difference(meant, card.meant(replayed(card, tmp_path / "zeros")))) is None, why
    for seed in (1, 2):
        found = card.meant(replayed(card, tmp_path / f"random{seed}", seed))
        assert (why := first_difference(meant, found)) is None, f"seed {seed}: {why}"


def test_without_the_reset_it_does_not(tmp_path):
    card = run(card_of("tiny"), 8)
    found = replayed(card, tmp_path, seed=1, reset_cycles=0)
    assert first_difference(card.meant(card.words[False]), card.meant(found)) is not None
