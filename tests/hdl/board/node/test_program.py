"""The soft core's program, as it is assembled, on an interpreter of the test's own and a card of a few lines."""

import random

import pytest
from lanikai.hdl.board.node import layout
from lanikai.hdl.board.node.core import CARD_BASE, PROGRAM_WORDS
from lanikai.hdl.board.node.layout import Result
from lanikai.hdl.board.node.program import constants, program_words
from lanikai.hdl.nic.blocks import NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE

SEED = 5
FLOW, SEQUENCE = 8, 12
"""Bytes of a header in which a flow and a sequence number stand."""


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 & 1 else value


class Card:
    """Registers, SRAM and host memory. An engine's work takes `cycles()`, and is there at once; `spoil` changes a
    packet on its way."""

    def __init__(self, *, cycles, spoil=lambda number, packet: packet):
        self.sram, self.host = bytearray(4096), bytearray(layout.HOST_MEMORY_BYTES)
        self.cycles, self.spoil = cycles, spoil
        self.registers, self.now, self.doorbells, self.interrupts, self.sent = {}, 0, 1, 0, []

    def read(self, address):
        self.now += 1
        if address < REGISTER_BASE:
            return int.from_bytes(self.sram[address : address + 4], "little")
        name = next(name for name, one in NIC_REGISTERS.items() if one.offset == address - REGISTER_BASE)
        if name == "RTC":
            return self.now
        if name == "DOORBELL_QUEUE":
            self.doorbells, rung = 0, self.doorbells
            return rung << 31
        return self.registers.get(name, 0)

    def write(self, address, word):
        if address < REGISTER_BASE:
            self.sram[address : address + 4] = word.to_bytes(4, "little")
            return
        name = next(name for name, one in NIC_REGISTERS.items() if one.offset == address - REGISTER_BASE)
        events = self.registers.get("ISR", 0)
        if name == "ISR":
            word = events & ~word
        self.registers[name] = word
        if name == "HOST_DMA_CONTROL":
            here, there = self.registers["HOST_DMA_SRAM"], self.registers["HOST_DMA_HOST"]
            count = word & 0xFFFF
            if word >> 16 & 1:
                self.host[there : there + count] = self.sram[here : here + count]
            else:
                self.sram[here : here + count] = self.host[there : there + count]
            self.registers["ISR"] = events | 1
        if name == "SEND_CONTROL":
            assert self.registers["RECEIVE_CONTROL"] == layout.AREA_BYTES, "sent before a buffer was armed"
            start, count = self.registers["SEND_ADDRESS"], layout.HEADER_BYTES + word
            packet = self.spoil(len(self.sent), bytes(self.sram[start : start + count]))
            self.sent.append(packet)
            place = self.registers["RECEIVE_ADDRESS"]
            self.sram[place : place + count] = packet
            self.registers["ISR"] = events | 1 << 1 | 1 << 2
            self.now += self.cycles()
        if name == "HOST_INTERRUPT":
            self.interrupts += 1


def run(words, card, *, steps=200_000):
    """Run until the card has interrupted its host, and has no doorbell any more. Each step is a cycle."""
    x, pc = [0] * 32, 0
    for _ in range(steps):
        if card.interrupts and not card.doorbells and words[pc // 4] & 0x7F == 0x03:
            return
        card.now += 1
        word, after = words[pc // 4], pc + 4
        code, rd, rs1, rs2 = word & 0x7F, word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
        kind, high = word >> 12 & 7, word >> 25
        a, b = x[rs1], x[rs2]
        immediate, value = signed(word >> 20, 12), None
        if code == 0x37:
            value = word & 0xFFFFF000
        elif code == 0x13 and kind == 0:
            value = a + immediate
        elif code == 0x33:
            value = {(0, 0): a + b, (0x20, 0): a - b, (0, 6): a | b, (0, 7): a & b}[high, kind]
        elif code == 0x03 and kind == 2:
            value = card.read(a + immediate - CARD_BASE)
        elif code == 0x23 and kind == 2:
            card.write(a + signed(high << 5 | rd, 12) - CARD_BASE, b)
        elif code == 0x6F:
            value = after
            bits = (
                (word >> 31 << 20)
                | (word >> 12 & 0xFF) << 12
                | (word >> 20 & 1) << 11
                | (word >> 21 & 0x3FF) << 1
            )
            after = pc + signed(bits, 21)
        elif code == 0x67 and kind == 0:
            value, after = after, a + immediate
        elif code == 0x63:
            bits = (word >> 31 << 12) | (rd & 1) << 11 | (high & 0x3F) << 5 | (rd >> 1) << 1
            goes = {0: a == b, 1: a != b, 5: signed(a, 32) >= signed(b, 32), 7: a >= b}[kind]
            after = pc + signed(bits, 13) if goes else after
        else:
            pytest.fail(f"{word:#010x} at {pc:#x} is no instruction that the test knows")
        if value is not None and rd:
            x[rd] = value & 0xFFFF_FFFF
        pc = after
    pytest.fail("the program does not end")


def command(card, *, count, length, sequence=0):
    """Give the card a command, and random messages. Returns the area that they come from."""
    rng = random.Random(SEED)
    header = (
        bytes(FLOW) + (0x5A5 << 20).to_bytes(4, "little") + (length | sequence << 16).to_bytes(4, "little")
    )
    counts = count.to_bytes(4, "little") + length.to_bytes(4, "little")
    card.host[layout.COMMAND : layout.COMMAND + 24] = header + counts
    area = rng.randbytes(layout.AREA_BYTES)
    card.host[layout.SOURCE : layout.SOURCE + layout.AREA_BYTES] = area
    return area


def results(card):
    return {one: int.from_bytes(card.host[layout.RESULT + 4 * one :][:4], "little") for one in Result}


def test_the_program_fits():
    words = program_words()
    assert 0 < len(words) <= PROGRAM_WORDS
    assert max(constants()[f"{name}_SEQUENCE"] for name in ("SRAM_PACKET", "SRAM_RECEIVE")) < 2048, (
        "12 bits, signed"
    )


@pytest.mark.parametrize(("count", "length"), [(1, 4), (3, 400), (40, 64), (5, 1024)])
def test_messages_go_through_and_are_counted(count, length):
    """Places come one behind the other, sequence numbers count up past 16 bits, times have their extremes."""
    rng = random.Random(SEED)
    times = [rng.randrange(1000, 9000) for _ in range(count)]
    left = iter(times)
    card = Card(cycles=lambda: next(left))
    card.registers |= {"CRC_ERRORS": 3, "LENGTH_ERRORS": 4}
    area = command(card, count=count, length=length, sequence=0xFFFE)
    run(program_words(), card)
    places = [i % (layout.AREA_BYTES // length) * length for i in range(count)]
    assert [one[16:] for one in card.sent] == [area[place : place + length] for place in places]
    numbers = [int.from_bytes(one[SEQUENCE + 2 : SEQUENCE + 4], "little") for one in card.sent]
    assert numbers == [(0xFFFE + i) % 0x10000 for i in range(count)]
    got = bytes(card.host[layout.DESTINATION : layout.DESTINATION + layout.AREA_BYTES])
    used = max(places) + length
    assert got == area[:used] + bytes(layout.AREA_BYTES - used)
    found = results(card)
    own = found[Result.LEAST_CYCLES] - min(times)
    assert 0 < own < 200, "the program's own steps"
    assert found[Result.MOST_CYCLES] == max(times) + own
    assert found[Result.SUM_CYCLES] == sum(times) + count * own
    assert found[Result.SUM_CYCLES] <= found[Result.SPAN_CYCLES] < found[Result.SUM_CYCLES] + 60 * count
    assert (found[Result.MESSAGES], found[Result.WRONG_HEADERS]) == (count, 0)
    assert (found[Result.CRC_ERRORS], found[Result.LENGTH_ERRORS]) == (3, 4)
    assert card.interrupts == 1


@pytest.mark.parametrize("place", [FLOW, SEQUENCE, SEQUENCE + 3])
def test_a_wrong_header_is_counted(place):
    """Another flow, length or sequence number; two of ten."""

    def spoil(number, packet):
        return (
            packet[:place] + bytes([packet[place] ^ 1]) + packet[place + 1 :] if number in (2, 7) else packet
        )

    card = Card(cycles=lambda: 100, spoil=spoil)
    command(card, count=10, length=64)
    run(program_words(), card)
    assert results(card)[Result.WRONG_HEADERS] == 2
