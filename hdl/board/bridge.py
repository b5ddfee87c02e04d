"""A request port behind a serial line: frames in, accesses, frames out."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..traffic.ports import REQUEST, RESPONSE
from .frames import BOARD, BOARD_NODE, CRC, PROTOCOL, REFUSED, REQUEST_BYTES, Status
from .uart import UartReceiver, UartTransmitter

__all__ = ["RegisterBridge"]

ANSWER_CYCLES = 15
"""Cycles until an access has no answer: several times what those of the traffic system take (`READ_CYCLES`)."""


class RegisterBridge(wiring.Component):
    """Serves the requests of a host (`frames.py`), one at a time.

    Members:

    - `rx` (in), `tx` (out): the serial line.
    - `request` (out, `REQUEST`), `response` (in, `RESPONSE`): the port that a host reads and writes through.
    - `restart` (out): for one cycle, to reset what is behind the port.

    Parameters:

    - `bit_cycles`: those of the line.
    - `identity`, `clock_hz`, `label` (ASCII): shown by `board.rdl`.
    - `gap_cycles`: the silence inside a request after which it is dropped, so that a lost byte does not shift all later
      ones.

    Latency: a reply begins within 20 cycles of its request. Throughput: a word read takes 4 bytes of the line.
    Reset: waits for a request.
    """

    def __init__(
        self, *, bit_cycles: int, identity: int, clock_hz: int, gap_cycles: int, label: str = ""
    ) -> None:
        self._bit_cycles, self._gap_cycles = bit_cycles, gap_cycles
        text = label.encode("ascii")
        shown = {"PROTOCOL": PROTOCOL, "IDENTITY": identity, "CLOCK": clock_hz, "LABEL_BYTES": len(text)}
        # The words of `board.rdl` by their places, the label's behind them.
        self._shown = [0] * (BOARD["LABEL"].offset // 4)
        for name, word in shown.items():
            self._shown[BOARD[name].offset // 4] = word
        self._shown += [int.from_bytes(text[i : i + 4], "little") for i in range(0, len(text), 4)]
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "request": Out(REQUEST),
                "response": In(RESPONSE),
                "restart": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(bit_cycles=self._bit_cycles)
        m.submodules.transmitter = transmitter = UartTransmitter(bit_cycles=self._bit_cycles)
        m.submodules.crc = crc = CRC.create()
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]

        # The request without its CRC: the first byte ends in the low bits.
        frame, count = Signal(8 * (REQUEST_BYTES - 2)), Signal(range(REQUEST_BYTES + 1))
        letter, node = frame[:8], frame[8 : 8 + REQUEST["node"].width]
        address = frame[24 : 24 + REQUEST["address"].width]
        value = frame[48:]
        silent = Signal(range(self._gap_cycles + 1))
        offset, left = Signal.like(address), Signal(8)
        word, byte, status, head = Signal(32), Signal(2), Signal(2), Signal(8)
        waited = Signal(range(ANSWER_CYCLES + 1))
        own = node == BOARD_NODE
        # The address stands a cycle before the word is looked at. Beyond the last word others are shown again.
        m.submodules.shown = shown = Memory(
            shape=32, depth=1 << (len(self._shown) - 1).bit_length(), init=self._shown
        )
        own_word = shown.read_port()
        m.d.comb += own_word.addr.eq((address + offset)[2:])
        out, sent = transmitter.data, Signal()
        m.d.comb += [
            sent.eq(out.valid & out.ready),
            self.request.node.eq(node),
            self.request.address.eq(address + offset),
            self.request.data.eq(value),
        ]

        def send(payload: Any, *, counted: bool = True) -> None:
            m.d.comb += [out.payload.eq(payload), out.valid.eq(1)]
            if counted:
                m.d.comb += [crc.data.eq(payload), crc.valid.eq(sent)]

        with m.FSM():
            with m.State("receive"):
                m.d.comb += [crc.data.eq(receiver.payload), crc.valid.eq(receiver.valid)]
                m.d.sync += [offset.eq(0), waited.eq(0), byte.eq(0)]
                with m.If(count == REQUEST_BYTES):
                    m.next = "check"
                with m.Elif(receiver.valid):
                    m.d.sync += [count.eq(count + 1), silent.eq(0)]
                    with m.If(count < REQUEST_BYTES - 2):
                        m.d.sync += frame.eq(Cat(frame[8:], receiver.payload))
                with m.Elif(silent == self._gap_cycles):
                    m.d.comb += crc.start.eq(1)
                    m.d.sync += [count.eq(0), silent.eq(0)]
                with m.Elif(count != 0):
                    m.d.sync += silent.eq(silent + 1)
            with m.State("check"):
                m.d.sync += [head.eq(letter | 0x20), left.eq(0), status.eq(Status.DONE), count.eq(0)]
                m.d.comb += crc.start.eq(1)
                with m.If(~crc.match_detected):
                    m.d.sync += [head.eq(REFUSED), status.eq(Status.WRONG_CRC)]
                with m.Elif(letter == ord("W")):
                    m.d.comb += [
                        self.request.valid.eq(~own),
                        self.request.write.eq(1),
                        self.restart.eq(own & (address == BOARD["RESTART"].offset)),
                    ]
                with m.Elif((letter == ord("R")) & (value[8:] == 0) & (value[:8] != 0)):
                    m.d.sync += left.eq(value[:8])
                with m.Else():
                    m.d.sync += [head.eq(REFUSED), status.eq(Status.UNKNOWN)]
                m.next = "head"
            with m.State("head"):
                send(head)
                with m.If(sent):
                    m.next = "next"
            with m.State("next"):
                m.d.sync += waited.eq(0)
                m.next = "status"
                with m.If(left != 0):
                    m.d.comb += self.request.valid.eq(~own)
                    m.next = "wait"
            with m.State("wait"):
                m.d.sync += [waited.eq(waited + 1), word.eq(self.response.data)]
                with m.If(own):
                    m.d.sync += word.eq(own_word.data)
                with m.If(own | self.response.valid | (waited == ANSWER_CYCLES)):
                    with m.If(~own & ~self.response.valid):
                        m.d.sync += [word.eq(0), status.eq(Status.NO_ANSWER)]
                    m.next = "word"
            with m.State("word"):
                send(word[:8])
                with m.If(sent):
                    m.d.sync += [word.eq(word >> 8), byte.eq(byte + 1)]
                    with m.If(byte == 3):
                        m.d.sync += [offset.eq(offset + 4), left.eq(left - 1)]
                        m.next = "next"
            with m.State("status"):
                send(status)
                with m.If(sent):
                    m.next = "crc"
            with m.State("crc"):
                # A cycle later the CRC has the status too; the line is busy for longer.
                send(Mux(byte[0], crc.crc[:8], crc.crc[8:]), counted=False)
                with m.If(sent):
                    m.d.sync += byte.eq(byte + 1)
                    with m.If(byte[0]):
                        m.d.comb += crc.start.eq(1)
                        m.next = "receive"
        return m
