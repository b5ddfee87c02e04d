"""VirtualClock stamps in hardware, for queues in the order of stamps (nagar-thesis-2001 5.3.3)."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError
from ...config.nic import SCAN_CYCLES, least_stamp_bits
from ..rtc import difference

__all__ = ["Stamper"]


class Stamper(wiring.Component):
    """Stamps of `channels` channels on a clock of `bits` bits: auxVC = max(RTC, auxVC) + Vtick.

    Members:

    - `rtc` (in, `bits`): the clock.
    - `request` (in, stream of a channel): the next packet of the channel is to be stamped.
    - `stamp` (out, stream of `channel` and `ticks`): its stamp, which is the channel's auxVC from then on.
    - `write` (in, stream of `channel` and `ticks`): sets a channel's Vtick, at most a quarter of the clock's range less
      one. A longer one is written as that. The longest stands for best effort's infinite Vtick.
    - `rests` (out): no stamp is being made and no scan is under way. Until a request or the next scan nothing changes
      but what follows from `rtc`.

    The RTC that counts is that of the cycle in which the request is taken. A stamp is at most that quarter ahead of it.
    Requests for a channel that does not exist are answered with a stamp of no meaning, and writes do nothing.

    An auxVC that the clock has passed is as good as the clock's own value. A scan sets it to that, so that an auxVC of
    any age is never taken for a future one. A scan begins with each quarter of the clock's range, and is over before
    the next one. It visits a channel every `SCAN_CYCLES` (16) cycles, before requests.

    Latency: 3 cycles from `request` to `stamp`, 4 more if the scan is at it. Throughput: a stamp in 4 cycles. Reset: a
    scan sets every auxVC to the clock, 4 cycles a channel, before a request is taken. Vticks stay as they are, as a
    card's channels and regions do; after power-on they are zero.

    A stamp that is not taken holds up the scan too. So it must be taken within a quarter of the clock's range, less the
    time of a scan.

    Raises ConfigError for less than 1 channel, and for a clock of too few bits for the scan.
    """

    def __init__(self, *, channels: int, bits: int = 32) -> None:
        if channels < 1:
            raise ConfigError(f"Stamper: channels = {channels}: at least 1")
        least = least_stamp_bits(channels)
        if bits < least:
            raise ConfigError(
                f"Stamper: bits = {bits}: at least {least} for {channels} channels (the scan comes to each in time)"
            )
        self.channels, self.bits = channels, bits
        self.max_vtick_ticks = (1 << (bits - 2)) - 1
        self._width = max(1, (channels - 1).bit_length())
        stamped = data.StructLayout({"channel": self._width, "ticks": bits})
        super().__init__(
            {
                "rtc": In(bits),
                "request": In(stream.Signature(self._width)),
                "stamp": Out(stream.Signature(stamped)),
                "write": In(stream.Signature(stamped)),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, most, rows = self.bits, self.max_vtick_ticks, 1 << self._width
        m.submodules.auxs = auxs = memory.Memory(shape=unsigned(bits), depth=rows, init=[])
        m.submodules.vticks = vticks = memory.Memory(shape=unsigned(bits - 2), depth=rows, init=[])
        aux, aux_write = auxs.read_port(), auxs.write_port()
        vtick, vtick_write = vticks.read_port(), vticks.write_port()
        m.d.comb += [
            self.write.ready.eq(1),
            vtick_write.addr.eq(self.write.payload.channel),
            vtick_write.data.eq(Mux(self.write.payload.ticks > most, most, self.write.payload.ticks)),
            vtick_write.en.eq(self.write.valid & (self.write.payload.channel < self.channels)),
        ]

        # 0: idle. 1: auxVC and Vtick are there. 2: the lead over the clock. 3: the sum, and the stamp, until taken.
        stage = Signal(2)
        pace, due, scan = Signal(range(SCAN_CYCLES)), Signal(), Signal(range(self.channels))
        # A new quarter of the clock's range begins a scan.
        quarter, scans, turns = Signal(2), Signal(), Signal()
        # Since the reset the scan has not come round once: the values in the memory are from before it.
        fresh, looks_next = Signal(init=1), Signal()
        looks, channel, now = Signal(), Signal(self._width), Signal(bits)
        target = Signal(self._width)
        last = scan == self.channels - 1
        m.d.sync += pace.eq(Mux(scans, pace + 1, 0))
        with m.If(scans & (pace == 0)):
            m.d.sync += due.eq(1)
        with m.If((stage == 0) & looks_next):
            m.d.sync += [due.eq(0), scan.eq(Mux(last, 0, scan + 1))]
            with m.If(last & ~fresh):
                m.d.sync += scans.eq(0)
        m.d.comb += turns.eq(self.rtc[-2:] != quarter)
        with m.If(turns):
            m.d.sync += [quarter.eq(self.rtc[-2:]), scans.eq(1)]
        m.d.comb += [
            looks_next.eq(due | fresh),
            self.request.ready.eq((stage == 0) & ~looks_next),
            target.eq(Mux(looks_next, scan, self.request.payload)),
            aux.addr.eq(target),
            vtick.addr.eq(target),
            self.rests.eq(self.request.ready & ~self.request.valid & ~scans & ~turns),
        ]
        ahead, step, total = Signal(signed(bits)), Signal(bits - 2), Signal(bits - 1)
        with m.If(stage == 1):
            m.d.sync += [ahead.eq(difference(aux.data, now)), step.eq(Mux(looks, 0, vtick.data))]
        with m.If(stage == 2):
            m.d.sync += total.eq(Mux((ahead < 0) | fresh, 0, ahead) + step)
        m.d.comb += [
            self.stamp.valid.eq((stage == 3) & ~looks),
            self.stamp.payload.channel.eq(channel),
            self.stamp.payload.ticks.eq(now + Mux(total > most, most, total)),
            aux_write.addr.eq(channel),
            aux_write.data.eq(self.stamp.payload.ticks),
            aux_write.en.eq(stage == 3),
        ]
        with m.Switch(stage):
            with m.Case(0):
                m.d.sync += [
                    stage.eq(looks_next | self.request.valid),
                    looks.eq(looks_next),
                    channel.eq(target),
                    now.eq(self.rtc),
                ]
            with m.Case(3):
                m.d.sync += stage.eq(Mux(looks | self.stamp.ready, 0, 3))
                with m.If(looks & (channel == self.channels - 1)):
                    m.d.sync += fresh.eq(0)
            with m.Default():
                m.d.sync += stage.eq(stage + 1)
        return m
