"""Moves a byte string from chunks of one width and alignment to chunks of another, for the DMA engine."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Realigner"]

FEW_LANES = 4
"""Most lanes of a chunk in for which a lane's choice among them is smaller and faster than shifting them into place."""


class Realigner(wiring.Component):
    """A gearbox of lanes of `lane_bytes` bytes, which moves a string of bytes to another lane.

    A string of `bytes` bytes begins at lane `skip` of the first chunk in. It leaves beginning at lane `place` of the
    first chunk out. Chunks in have `lanes_in` lanes, chunks out `lanes_out`. `ahead` is the number of chunks that may
    be on their way while the next is asked for (0 or 1).

    Members:

    - `start` (in), `skip` (in, `range(lanes_in)`), `place` (in, `range(lanes_out)`), `bytes` (in, 16): begin a string.
      The rest of the one before is forgotten. With `bytes` = 0 nothing comes out.
    - `ready` (out): there is room for a chunk more than the one of `pending` (in).
    - `valid` (in), `data` (in): a chunk in, taken in that cycle whatever `ready` says. So a chunk is asked for only
      when `ready` is high.
    - `out_valid` (out), `out_ready` (in), `out_data` (out), `out_mask` (out, a bit a byte): a chunk out, held until
      taken. `out_mask` marks the bytes of the string.
    - `idle` (out): the whole string has left.

    Latency: 1 cycle. Throughput: the narrower side moves a chunk every cycle, at any alignment, while both sides go
    on. Outputs follow from registers alone, `ready` from `pending` too. Reset: idle.
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

        # `held` has the next chunk out in its low lanes; lanes from `level` on mean nothing.
        held = [Signal(lane_bits, name=f"held_{i}") for i in range(capacity)]
        level = Signal(range(capacity + 1))
        skip = Signal.like(self.skip)
        place = Signal.like(self.place)
        # From lane 0 of the chunk out to the string's end: whole chunks, and bytes of the last one.
        chunks = Signal(range((1 << 16) // out_bytes + 1))
        rest = Signal(range(out_bytes))
        # `last`: no whole chunk is left, known from the second cycle of a string on. `over`: nothing is left. `needs`:
        # the lanes with which the next chunk can leave.
        last, over, needs = Signal(), Signal(init=1), Signal(range(lanes_out + 1), init=lanes_out)
        next_over, next_needs = Signal(), Signal.like(needs)
        taken = Signal()
        m.d.comb += [
            self.idle.eq((chunks == 0) & (rest == 0)),
            self.ready.eq(level + Mux(self.pending, 2 * lanes_in, lanes_in) <= capacity),
            self.out_data.eq(Cat(held[:lanes_out])),
            self.out_mask.eq(Mux(last, (1 << rest) - 1, -1) & (-1 << (place * lane_bytes))),
            taken.eq(self.out_valid & self.out_ready),
            next_over.eq(over),
            next_needs.eq(needs),
        ]
        with m.If(last), m.If(taken):
            m.d.comb += next_over.eq(1)
            m.d.sync += rest.eq(0)
        with m.Else():
            with m.If(taken):
                m.d.sync += chunks.eq(chunks - 1)
            with m.If(Mux(taken, chunks == 1, chunks == 0)):
                m.d.comb += [next_over.eq(rest == 0), next_needs.eq((rest + lane_bytes - 1) // lane_bytes)]
                m.d.sync += last.eq(1)
        with m.If(taken):
            m.d.sync += place.eq(0)

        self._hold(m, held, level, taken, self.data >> (skip * lane_bits))
        # The last chunk may leave with fewer lanes than a chunk has; `start` sets the level anew after it.
        remains, next_level = Signal.like(level), Signal.like(level)
        m.d.comb += [remains.eq(Mux(taken, level - lanes_out, level)), next_level.eq(remains)]
        with m.If(self.valid):
            m.d.comb += next_level.eq(remains + lanes_in - skip)
            m.d.sync += skip.eq(0)
        m.d.sync += [
            level.eq(next_level),
            over.eq(next_over),
            needs.eq(next_needs),
            self.out_valid.eq((next_level >= next_needs) & ~next_over),
        ]
        with m.If(self.start):
            m.d.sync += [
                level.eq(self.place),
                skip.eq(self.skip),
                place.eq(self.place),
                Cat(rest, chunks).eq(Mux(self.bytes == 0, 0, self.bytes + lane_bytes * self.place)),
                last.eq(0),
                over.eq(0),
                needs.eq(lanes_out),
                self.out_valid.eq(0),  # `place` lanes are less than a chunk.
            ]
        return m

    def _hold(self, m: Module, held: list[Signal], level: Signal, taken: Signal, fresh: Value) -> None:
        """The lanes that are held stay, or go down by a chunk.

        Above them stands the chunk that comes in; without one the lanes there mean nothing.
        """
        lanes_in, lanes_out, lane_bits = self.lanes_in, self.lanes_out, 8 * self.lane_bytes
        stays = Mux(taken, Cat(held[lanes_out:], held[-lanes_out:]), Cat(held))
        if lanes_in > FEW_LANES:
            base = Mux(taken, level - lanes_out, level)[: len(level)]
            above = ((1 << len(held) * lane_bits) - 1) << (base * lane_bits)
            m.d.sync += Cat(held).eq((stays & ~above) | (fresh << (base * lane_bits)))
            return
        # A lane takes one of few: the first of them stands at lane `base`, one-hot.
        base = [Signal(name=f"base_{k}") for k in range(len(held) - lanes_in + 1)]
        for k, here in enumerate(base):
            m.d.comb += here.eq(Mux(taken, level == k + lanes_out, level == k))
        for i, lane in enumerate(held):
            m.d.sync += lane.eq(stays.word_select(i, lane_bits))
            for j in range(lanes_in):
                if 0 <= i - j < len(base):
                    with m.If(base[i - j]):
                        m.d.sync += lane.eq(fresh.word_select(j, lane_bits))
