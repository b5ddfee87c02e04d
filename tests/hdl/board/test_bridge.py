"""The request port behind the serial line: frames against a register file of the test's own."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.board.bridge import RegisterBridge
from lanikai.hdl.board.frames import BOARD, BOARD_NODE, CRC, PROTOCOL, REFUSED, Status, pack_request
from lanikai.sim.fpga.line import BoardLine, LineError

SEED = 42
CYCLES = 4
"""Cycles of a bit."""
GAP = 600
IDENTITY, CLOCK_HZ = 0x1234_5678, 12_000_000
LABEL = "a design ports=2"


def crc16(data):
    """CRC-16/IBM-3740, bit by bit."""
    value = 0xFFFF
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ (0x1021 if value & 0x8000 else 0)) & 0xFFFF
    return value


def converse(*messages):
    """The replies to messages (bytes, and the silence after each in cycles), the writes that came through, and the
    number of restarts. A register holds 3 times its address and its node, and none answers above 0x1000."""
    dut = RegisterBridge(bit_cycles=CYCLES, identity=IDENTITY, clock_hz=CLOCK_HZ, gap_cycles=GAP, label=LABEL)
    levels, writes, restarts, done = [], [], [], []

    async def host(ctx):
        for message, silence in messages:
            for byte in message:
                for bit in [0, *(byte >> i & 1 for i in range(8)), 1]:
                    ctx.set(dut.rx, bit)
                    await ctx.tick().repeat(CYCLES)
            await ctx.tick().repeat(silence)
        done.append(True)

    async def registers(ctx):
        late = [None] * 3
        while not done:
            asked = None
            if ctx.get(dut.request.valid):
                place = ctx.get(dut.request.node), ctx.get(dut.request.address)
                if ctx.get(dut.request.write):
                    writes.append((*place, ctx.get(dut.request.data)))
                elif place[1] < 0x1000:
                    asked = place
            late = [*late[1:], asked]
            ctx.set(dut.response.valid, late[0] is not None)
            ctx.set(dut.response.data, 3 * late[0][1] + late[0][0] if late[0] else 0)
            restarts.append(ctx.get(dut.restart))
            levels.append(ctx.get(dut.tx))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(host)
    sim.add_testbench(registers)
    sim.run()
    found, place = bytearray(), 0
    while 0 in levels[place:]:
        start = levels.index(0, place)
        found.append(sum(levels[start + CYCLES // 2 + i * CYCLES] << i - 1 for i in range(1, 9)))
        place = start + 10 * CYCLES
    return bytes(found), writes, sum(restarts)


def reply(letter, *words, status=Status.DONE):
    data = letter + b"".join(word.to_bytes(4, "little") for word in words) + bytes([status])
    return data + crc16(data).to_bytes(2, "big")


def read(node, address, count):
    return pack_request(write=False, node=node, address=address, value=count)


def write(node, address, word):
    return pack_request(write=True, node=node, address=address, value=word)


def test_the_crc_of_the_frames_is_that_of_its_definition():
    rng = random.Random(SEED)
    data = rng.randbytes(30)
    assert CRC.compute(data) == crc16(data) and crc16(b"123456789") == 0x29B1


def test_words_are_written_and_read():
    found, writes, restarts = converse(
        (write(7, 0x204, 0xDEADBEEF), 400), (read(5, 0x100, 3), 1200), (read(1024, 0x10, 1), 600)
    )
    assert found == reply(b"w") + reply(b"r", 0x305, 0x311, 0x31D) + reply(b"r", 0x30 + 1024)
    assert writes == [(7, 0x204, 0xDEADBEEF)] and restarts == 0


def test_the_board_tells_what_it_is_and_restarts():
    found, writes, restarts = converse(
        (read(BOARD_NODE, 0, 3), 1000),
        (write(BOARD_NODE, BOARD["RESTART"].offset, 1), 400),
        (read(BOARD_NODE, BOARD["LABEL_BYTES"].offset, 5), 1400),
    )
    label = [int.from_bytes(LABEL.encode()[i : i + 4], "little") for i in range(0, 16, 4)]
    assert found == reply(b"r", PROTOCOL, IDENTITY, CLOCK_HZ) + reply(b"w") + reply(b"r", len(LABEL), *label)
    assert writes == [] and restarts == 1


def test_what_is_wrong_is_refused_and_what_has_no_answer_is_told():
    bad = bytearray(write(7, 0x204, 1))
    bad[7] ^= 0x10
    unknown = b"X" + bytes(9)
    unknown += crc16(unknown).to_bytes(2, "big")
    refused = bytes([REFUSED])
    found, writes, _ = converse(
        (bad, 400), (unknown, 400), (read(1, 0, 0), 400), (read(1, 0xFFC, 2), 1000), (read(1, 0, 1), 600)
    )
    assert found == (
        reply(refused, status=Status.WRONG_CRC)
        + reply(refused, status=Status.UNKNOWN) * 2
        + reply(b"r", 3 * 0xFFC + 1, 0, status=Status.NO_ANSWER)
        + reply(b"r", 1)
    )
    assert writes == []


def test_a_request_that_lost_a_byte_is_dropped_after_a_silence():
    found, _, _ = converse((read(1, 8, 1)[:-1], GAP + 50), (read(1, 8, 1), 600))
    assert found == reply(b"r", 25)


class Port:
    """A serial port whose replies are given."""

    def __init__(self, *replies):
        self.replies, self.sent, self.left = list(replies), [], b""

    def write(self, data):
        self.sent.append(data)
        self.left = self.replies.pop(0)

    def read(self, size):
        got, self.left = self.left[:size], self.left[size:]
        return got

    def reset_input_buffer(self):
        self.left = b""

    def close(self):
        pass


def test_the_host_asks_again_and_says_what_was_wrong():
    good, broken = reply(b"r", 5), reply(b"r", 5)[:-1] + b"?"
    port = Port(broken, b"", good)
    assert BoardLine(port, "tty").read(1, 8) == [5] and len(port.sent) == 3
    with pytest.raises(LineError, match=r"^tty: no answer: is the board programmed, .* \(3 tries\)$"):
        BoardLine(Port(b"", b"", b""), "tty").read(1, 8)
    with pytest.raises(LineError, match="a broken reply of 8 bytes"):
        BoardLine(Port(*[broken] * 3), "tty").read(1, 8)
    refused = reply(bytes([REFUSED]), status=Status.WRONG_CRC)
    with pytest.raises(LineError, match="refused with status 2"):
        BoardLine(Port(*[refused] * 3), "tty").read(1, 8)
    nothing = reply(b"r", 0, status=Status.NO_ANSWER)
    with pytest.raises(LineError, match=r"nothing answers at node 1, address 0x2008"):
        BoardLine(Port(nothing), "tty").read(1, 0x2008)
    words = [int.from_bytes(LABEL.encode()[i : i + 4], "little") for i in range(0, 16, 4)]
    label = Port(reply(b"r", PROTOCOL, 7), reply(b"r", len(LABEL) - 1), reply(b"r", *words))
    assert BoardLine(label, "tty").label() == LABEL[:-1]
    with pytest.raises(LineError, match=r"protocol 0x1, not 0x4c4e0002: build it anew"):
        BoardLine(Port(reply(b"r", 1, 2)), "tty").identity()


def test_words_that_follow_each_other_are_read_at_once():
    port = Port(reply(b"r", 1, 2), reply(b"r", 3), reply(b"r", 4))
    assert BoardLine(port, "tty").read_all([(1, 8), (1, 12), (2, 16), (2, 24)]) == [1, 2, 3, 4]
    assert port.sent == [read(1, 8, 2), read(2, 16, 1), read(2, 24, 1)]
