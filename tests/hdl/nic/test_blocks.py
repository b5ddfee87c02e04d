"""Blocks of a card: what the list promises of each, and a user's own in one file and one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lanikai.hdl
import pytest
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.block import Joined
from lanikai.hdl.nic.blocks import (
    HOST_REGISTERS,
    NIC_BLOCKS,
    NIC_REGISTERS,
    host_registers,
    nic_registers,
    wanted_blocks,
)
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.registers import declare, merge

TINY = preset(NicConfig, "tiny")
MODULE = '''
"""Packets that the card has sent, counted."""

from amaranth import Module, Signal

from ..registers import declare
from .block import Joined, NicBlock


class PacketsSent(NicBlock):
    """A counter of packets sent, modulo 2^32, and an event at each."""

    name = "packets_sent"
    registers = declare(
        """
        reg { field { hw = w; woclr; } packet_sent[21:21]; } ISR @ 0x000;
        reg { desc = "Packets sent."; field { sw = r; hw = w; } packets[31:0]; } PACKETS_SENT @ 0x3a0;
        """
    )

    def __init__(self, config, *, skippable=False):
        super().__init__(config, skippable=skippable)
        self.sent = Signal(32)

    def connect(self, m: Module, card):
        m.d.sync += self.sent.eq(self.sent + card.send.done)
        m.d.comb += card.registers.PACKETS_SENT.r_data.packets.eq(self.sent)
        return Joined(events={"packet_sent": card.send.done})
'''
USE = """
from hdl.nic.test_nic import Card
from lanikai.firmware import registers
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.nic.block import Joined
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.nic.ports import REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header

plain = preset(NicConfig, "tiny")
assert "PACKETS_SENT" not in nic_registers(plain) and nic_registers(plain)["IMR"].fields["mask"].width == 6
assert "packets_sent" not in to_verilog(Nic(plain), name="nic")
assert registers.address("PACKETS_SENT") == REGISTER_BASE + 0x3A0


async def script(ctx, c):
    bits = Header(length=4).pack()
    for word in range(4):
        await c.access(ctx, SRAM_BASE + 4 * word, bits >> 32 * word & 0xFFFFFFFF)
    for sent in range(2):
        assert not (await c.read(ctx, "ISR"))["packet_sent"]
        assert await c.read(ctx, "PACKETS_SENT") == {"packets": sent * has}
        await c.write(ctx, "RECEIVE_ADDRESS", address=0x200)
        await c.write(ctx, "RECEIVE_CONTROL", bytes=64)
        await c.write(ctx, "SEND_ADDRESS", address=0)
        await c.write(ctx, "SEND_CONTROL", bytes=4)
        await c.event(ctx, "packet_sent" if has else "send")
        await c.event(ctx, "receive")
    assert await c.read(ctx, "PACKETS_SENT") == {"packets": 2 * has}
    print("done", has)


for has in (True, False):
    Card(plain.replace(blocks=("packets_sent",) if has else ())).run(script)
"""


def test_a_new_block_is_one_file_and_one_line(tmp_path):
    """A counter with a register and an event, which a card has that names it, and no other."""
    source, package = Path(lanikai.hdl.__file__).parent, tmp_path / "lanikai"
    for name in ("hdl", "firmware"):
        shutil.copytree(
            source.parent / name, package / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=False
        )
    folder = package / "hdl" / "nic"
    (folder / "packets_sent.py").write_text(MODULE)
    registry = folder / "blocks.py"
    text = registry.read_text()
    imports, entry = "from .optional.pair_block import", "    ProcessorPair,\n)"
    assert text.count(imports) == text.count(entry) == 1
    text = text.replace(imports, "from .packets_sent import PacketsSent\n" + imports)
    registry.write_text(text.replace(entry, "    PacketsSent,\n" + entry))
    tests = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(tests)])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "done True\ndone False\n"


def test_what_blocks_say_of_their_registers_is_so():
    names = [block.name for block in NIC_BLOCKS]
    assert len(set(names)) == len(names)
    for block in NIC_BLOCKS:
        assert block.registers or block.host_registers, block.name
        assert block.common <= set(block.registers), block.name
        for command, things in block.names.items():
            for name in things:
                register, _, field = name.field.rpartition(".")
                assert field in NIC_REGISTERS[register or command].fields, block.name
        assert block.before in (None, "host_dma", "send", "receive")


def test_a_card_has_the_registers_of_its_blocks_and_no_others():
    wanted = wanted_blocks(TINY)
    of_blocks = {name for block in NIC_BLOCKS for name in block.registers}
    alone = of_blocks - {"ISR", "DOORBELL_SELECT"} - {name for block in wanted for name in block.registers}
    assert set(nic_registers(TINY)) == set(NIC_REGISTERS) - alone
    assert set(HOST_REGISTERS) - set(host_registers(TINY)) == {"HOST_COMPLETION"}
    assert [block.name for block in wanted] == [block.name for block in Nic(TINY).blocks]


@pytest.mark.parametrize("name", ["no_such", "completion"])
def test_a_block_that_is_not_asked_for_by_name_is_refused(name):
    with pytest.raises(ConfigError) as error:
        Nic(TINY.replace(blocks=(name,)))
    assert str(error.value) == f"NicConfig.blocks: {name!r}: none is asked for by name"


def test_events_that_no_register_declares_are_refused():
    """A block that gives an event its declaration lacks, or lacks one that it declares."""
    block = next(one for one in NIC_BLOCKS if one.name == "receive_doorbells")

    class Silent(block):
        def connect(self, m, card):
            super().connect(m, card)
            return Joined()

    card = Nic(TINY.replace(doorbell="queue", receive_doorbells="separate"))
    card.blocks = {Silent: Silent(card.config)}
    with pytest.raises(ValueError) as error:
        card.elaborate(None)
    assert str(error.value) == (
        "block receive_doorbells: events [], where its registers declare ISR ['receive_doorbell']"
    )


def test_declarations_are_merged_or_refused():
    one = declare('reg { desc = "First."; field {} low[3:0]; } A @ 0x10; reg { field {} x[0:0]; } B @ 0x4;')
    two = declare("reg { field {} high[7:4]; } A @ 0x10;")
    merged = merge(one, two)
    assert list(merged) == ["B", "A"] and list(merged["A"].fields) == ["low", "high"]
    assert merged["A"].doc == "First."
    for other, message in (
        ("reg { field {} low[9:8]; } A @ 0x10;", "register A: field 'low' is where 'low' is"),
        ("reg { field {} more[5:3]; } A @ 0x10;", "register A: field 'more' is where 'low' is"),
        ("reg { field {} x[9:9]; } A @ 0x14;", "register A: at 0x010 and at 0x014"),
        ("reg { field {} x[0:0]; } C @ 0x10;", "registers A and C: both at 0x010"),
    ):
        with pytest.raises(ValueError) as error:
            merge(one, declare(other))
        assert str(error.value) == message
