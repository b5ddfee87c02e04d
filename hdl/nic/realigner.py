"""Moves a byte string from chunks of one width and alignment to chunks of another, for the DMA engine."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Realigner"]


class Realigner(wiring.Component):
    """A gearbox of lanes of `lane_bytes` bytes: a string of `bytes` bytes that begins at lane `skip` of the first
    chunk in leaves beginning at lane `place` of the first chunk out. Chunks in have `lanes_in` lanes, chunks
    out `lanes_out`. `ahead` is how many chunks may be on their way while the next is asked for (0 or 1).

    Members:

    - `start` (in), `skip` (in, `range(lanes_in)`), `place` (in, `range(lanes_out)`), `bytes` (in, 16): begin
      a string; what is left of the one before is forgotten. With `bytes` = 0 nothing comes out.
    - `ready` (out): there is room for a chunk more than the one of `pending` (in). `valid` (in), `data` (in):
      a chunk in, taken in that cycle whatever `ready` says: ask for one only when `ready` is high.
    - `out_valid` (out), `out_ready` (in), `out_data` (out), `out_mask` (out, a bit a byte): a chunk out.
      `out_mask` marks the bytes of the string. Held until taken.
    - `idle` (out): the whole string has left.

    Latency 1 cycle. Throughput: the narrower side moves a chunk every cycle, at any alignment, while both
    sides go on. Outputs follow from registers alone, `ready` from `pending` too. Reset: idle.
    """

    def __init__(self, *, lanes_in: int, lanes_out: int, ahead: int, lane_bytes: int = 4) -> None:
        self.lanes_in, self.lanes_out, self.ahead = lanes_in, lanes_out, ahead
        self.lane_bytes = lane_bytes
        super().__init__(
            {
                "start": In(1),
                "skip": In(range(lanes_in)),
                "place": In(range(lanes_out)),
                "bytes": In(16),
                "pending": In(1),
                "ready": Out(1),
                "valid": In(1),
                "data": In(8 * lane_bytes * lanes_in),
                "out_valid": Out(1),
                "out_ready": In(1),
                "out_data": Out(8 * lane_bytes * lanes_out),
                "out_mask": Out(lane_bytes * lanes_out),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes_in, lanes_out, lane_bytes = self.lanes_in, self.lanes_out, self.lane_bytes
        lane_bits, out_bytes = 8 * lane_bytes, lane_bytes * lanes_out
        # A chunk out waits while the chunks asked for come in: 2 * lanes_out - 1 lanes are the most that can
        # stand here without a whole chunk more than the one that leaves, so the pipe never runs dry.
        capacity = lanes_in * (1 + self.ahead) + 2 * lanes_out - 1

        # `held` has the next chunk out in its low lanes and zeros above the first `level` lanes.
        held = Signal(lane_bits * capacity)
        level = Signal(range(capacity + 1))
        skip = Signal.like(self.skip)
        place = Signal.like(self.place)
        # Bytes from lane 0 of the chunk out to the string's end: up to 65535 and the lanes before its begin.
        left = Signal(range((1 << 16) + out_bytes))
        last = Signal()  # it ends within the chunk out
        taken = Signal()
        m.d.comb += [
            last.eq(left < out_bytes),
            self.idle.eq(left == 0),
            self.ready.eq(level + Mux(self.pending, 2 * lanes_in, lanes_in) <= capacity),
            self.out_valid.eq(Mux(last, (left != 0) & (level * lane_bytes >= left), level >= lanes_out)),
            self.out_data.eq(held),
            self.out_mask.eq(
                Mux(last, (1 << left[: (out_bytes - 1).bit_length()]) - 1, -1) & (-1 << (place * lane_bytes))
            ),
            taken.eq(self.out_valid & self.out_ready),
        ]

        stays = Signal.like(held)
        base = Signal.like(level)
        m.d.comb += [
            stays.eq(Mux(taken, held >> lane_bits * lanes_out, held)),
            # The last chunk may leave with fewer lanes than a chunk has; `start` sets the level anew after
            # it.
            base.eq(Mux(taken, level - lanes_out, level)),
        ]
        with m.If(taken):
            m.d.sync += [left.eq(Mux(last, 0, left - out_bytes)), place.eq(0)]
        with m.If(self.valid):
            fresh = self.data >> (skip * lane_bits)
            m.d.sync += [
                held.eq(stays | (fresh << (base * lane_bits))),
                level.eq(base + lanes_in - skip),
                skip.eq(0),
            ]
        with m.Else():
            m.d.sync += [held.eq(stays), level.eq(base)]
        with m.If(self.start):
            m.d.sync += [
                held.eq(0),
                level.eq(self.place),
                skip.eq(self.skip),
                place.eq(self.place),
                left.eq(Mux(self.bytes == 0, 0, self.bytes + lane_bytes * self.place)),
            ]
        return m
