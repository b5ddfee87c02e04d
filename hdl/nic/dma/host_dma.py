"""The host DMA engine: moves bytes between host memory (AXI4) and the SRAM.

It is the card's third engine, "responsible for moving data between SRAM and host memory" (nagar-thesis-2001 3.1),
called HDMA there.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...axi import Axi4Signature
from ...config import NicConfig
from ..sram import SramPortSignature
from .realigner import Realigner

__all__ = ["HOST_DMA_COMMAND", "HostDma"]

HOST_DMA_COMMAND = data.StructLayout({"host_address": 32, "sram_address": 20, "bytes": 16, "to_host": 1})
"""A transfer.

- `host_address`, `sram_address`: byte addresses, both multiples of the configuration's `dma_alignment_bytes`. If that
  is 4 their two low bits are ignored.
- `bytes`: bytes to move, 1 to 65535; 0 moves nothing and is done at once.
- `to_host`: 1 for SRAM to host memory, 0 for host memory to SRAM.
"""

PAGE_BYTES = 4096
"""No burst crosses a boundary of this many bytes (ARM IHI 0022, A3.4.1)."""


class HostDma(wiring.Component):
    """The host DMA engine: transfers in INCR bursts of at most `burst_beats` beats.

    `host_dma_bursts` bursts are under way at once: the next addresses are out before a burst's last beat has been
    answered.

    Members:

    - `start` (in, stream of `HOST_DMA_COMMAND`): ready when idle. Behind a queue (`host_dma_queue_entries`) one
      transfer may follow another closely, as said below.
    - `busy` (out): a transfer is under way.
    - `done` (out): the oldest transfer ends in this cycle, with its data in its place. The last SRAM write was granted,
      or the last write response has come. Transfers end in their order.
    - `error` (out): the transfer that ended last (in this cycle, if `done`) saw an error response. It ended after the
      bursts under way. Without a queue `error` is up before `done`, and cleared by `start`.
    - `moved` (out): a beat of data moves on the bus in this cycle.
    - `axi` (out, `Axi4Signature`): the bus, with ID 0. Addresses are whole bus words. Read beats may carry bytes before
      and after those asked for, which are dropped. Only bytes of the transfer are written, in host memory and in the
      SRAM.
    - `sram` (out, `SramPortSignature`): the SRAM. Addresses past its end wrap.

    A transfer follows another closely, and `start` is ready for it, under these conditions:

    - The transfer under way has put all its addresses out, and, to host memory, all its data.
    - The new one goes the same way.
    - There is no third transfer.

    Throughput: one bus beat a cycle as long as bus and SRAM are ready, at any alignment. No cycle is idle between
    bursts if the bus takes the next address early. Between transfers that follow closely 2 cycles (from host memory) or
    3 (to it) are idle. This holds for any latency of the bus that `host_dma_bursts` bursts cover.

    Latency: from `start` to the address on the bus: 2 cycles; to the first write data: 4 if the SRAM grants at once.
    From the last read beat to `done`: 2 cycles; from the last write response: 1. Reset: idle, no error.

    `wvalid` never waits for `awready`, nor do `bready` and `rready` wait for anything but the SRAM. No bus output
    depends on an input of the same cycle.

    With `config.pipelined` an address takes a cycle more: it comes 3 cycles from `start`, and no two bursts begin in
    cycles that follow each other. `done` takes a cycle more too, and the data of the next transfer begins behind it. So
    3 or 4 cycles are idle between transfers that follow closely.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(stream.Signature(HOST_DMA_COMMAND)),
                "busy": Out(1),
                "done": Out(1),
                "error": Out(1),
                "moved": Out(1),
                "axi": Out(Axi4Signature(data_bits=config.bus_bits)),
                "sram": Out(SramPortSignature(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, axi, sram, command = self.config, self.axi, self.sram, self.start.payload
        bus_bytes, word_bytes = config.bus_bits // 8, config.word_bytes
        lane = config.dma_alignment_bytes
        bus_lanes, word_lanes = bus_bytes // lane, word_bytes // lane

        m.submodules.to_sram = to_sram = Realigner(
            lanes_in=bus_lanes, lanes_out=word_lanes, ahead=0, lane_bytes=lane
        )
        # A word of the SRAM is under way in the cycle in which the next is asked for.
        m.submodules.to_bus = to_bus = Realigner(
            lanes_in=word_lanes, lanes_out=bus_lanes, ahead=1, lane_bytes=lane
        )

        begin = Signal()
        to_host = Signal()
        address = Signal(32)  # of the next burst
        beats_left = Signal(range((1 << 16) // bus_bytes + 2))  # not in a burst yet
        word = Signal.like(sram.address)
        words_left = Signal(range((1 << 16) // word_bytes + 2))  # not read from the SRAM yet
        most = config.host_dma_bursts
        bursts = Signal(range(most + 1))  # of the oldest transfer, not answered yet
        data_left = Signal(
            range(config.burst_beats + 1)
        )  # write beats of the planned burst, not on their way yet

        # No data is left; one beat is left. Beside such numbers a pipelined engine keeps the answers to these
        # questions.
        data_none, data_one = data_left == 0, data_left == 1
        if config.pipelined:
            data_none, data_one = Signal(init=1), Signal()
            all_planned = Signal(init=1)

        # A transfer that follows closely: its addresses go out (`behind`) while the oldest one's data and answers still
        # come. Without a queue there is none, and nothing of this.
        follows = config.host_dma_queue_entries > 0
        error = Signal(name="failing") if follows else self.error
        may_begin = ~self.busy
        planned: Value = all_planned if config.pipelined else beats_left == 0
        all_bursts: Value = bursts
        plan_error: Value = error
        begin_data, data_command = begin, command  # when the realigners turn to a transfer, and to which
        if follows:
            behind, later = Signal(), Signal.like(bursts)
            waits = Signal(HOST_DMA_COMMAND)
            data_command = Signal(HOST_DMA_COMMAND)
            begin_data, promote = Signal(), Signal()
            may_begin |= (
                ~behind & ~self.done & planned & (command.to_host == to_host) & (~to_host | data_none)
            )
            planned |= behind
            all_bursts = bursts + later
            plan_error &= ~behind
            m.d.comb += [
                promote.eq(self.done & behind),
                begin_data.eq((begin & (~self.busy | to_host)) | promote & ~to_host),
                data_command.eq(Mux(promote, waits, command)),
            ]
            with m.If(begin):
                m.d.sync += [waits.eq(command), behind.eq(self.busy)]
            with m.Elif(promote):
                m.d.sync += behind.eq(0)

        m.d.comb += [
            self.start.ready.eq(may_begin),
            begin.eq(self.start.valid & may_begin),
        ]
        ends = self.busy & (bursts == 0) & Mux(error, ~to_sram.out_valid, planned & to_sram.idle)
        if config.pipelined:
            m.d.sync += self.done.eq(ends & ~self.done)
        else:
            m.d.comb += self.done.eq(ends)
        bus_lane = _lane(command.host_address, lane, bus_lanes)
        data_bus_lane = _lane(data_command.host_address, lane, bus_lanes)
        word_lane = _lane(data_command.sram_address, lane, word_lanes)
        m.d.comb += [
            to_sram.start.eq(begin_data),
            to_sram.skip.eq(data_bus_lane),
            to_sram.place.eq(word_lane),
            to_sram.bytes.eq(Mux(data_command.to_host, 0, data_command.bytes)),
            to_bus.start.eq(begin_data),
            to_bus.skip.eq(word_lane),
            to_bus.place.eq(data_bus_lane),
            to_bus.bytes.eq(Mux(data_command.to_host, data_command.bytes, 0)),
        ]

        # Bursts: as long as the transfer, the configuration and the page allow.
        page_beats, most_beats = PAGE_BYTES // bus_bytes, config.burst_beats
        in_page = address[bus_bytes.bit_length() - 1 : PAGE_BYTES.bit_length() - 1]
        if page_beats % most_beats == 0:
            # In the last of the page's parts of so many beats, those that are left of it: one subtraction.
            low = most_beats.bit_length() - 1
            longest: Value = most_beats - Mux(in_page[low:].all(), in_page[:low], 0)
        else:
            to_page = page_beats - in_page
            longest = Mux(to_page < most_beats, to_page, most_beats)
        beats = Signal(range(config.burst_beats + 1))
        fits = beats_left <= longest
        length = Mux(fits, beats_left, longest)
        may_plan: Value = ~all_planned if config.pipelined else beats_left != 0
        plan = Signal()
        put = Signal()
        address_valid = Signal()
        address_ready = Mux(to_host, axi.awready, axi.arready)
        bus_address = Signal(32)
        bus_length = Signal(8)
        answered = Signal()
        if config.pipelined:
            # Measured in the cycle after that in which address and beats have moved on, or are a new transfer's.
            measured, is_last = Signal(), Signal()
            m.d.sync += [beats.eq(length), is_last.eq(fits), measured.eq(may_plan & ~plan & ~begin)]
            may_plan = measured
            with m.If(plan):
                m.d.sync += all_planned.eq(is_last)
        else:
            m.d.comb += beats.eq(length)
        m.d.comb += [
            plan.eq(
                self.busy
                & ~plan_error
                & may_plan
                & (all_bursts != most)
                & (~address_valid | address_ready)
                & (~to_host | data_none | (data_one & put))
            ),
            answered.eq(Mux(to_host, axi.bvalid & axi.bready, axi.rvalid & axi.rready & axi.rlast)),
        ]
        for channel, valid in (("aw", address_valid & to_host), ("ar", address_valid & ~to_host)):
            m.d.comb += [
                getattr(axi, f"{channel}valid").eq(valid),
                getattr(axi, f"{channel}addr").eq(bus_address),
                getattr(axi, f"{channel}len").eq(bus_length),
                getattr(axi, f"{channel}size").eq(bus_bytes.bit_length() - 1),
                getattr(axi, f"{channel}burst").eq(1),  # INCR
            ]

        with m.If(put):
            m.d.sync += data_left.eq(data_left - 1)
        if config.pipelined:
            with m.If(put):
                m.d.sync += [data_none.eq(data_one), data_one.eq(data_left == 2)]
            with m.If(plan):
                m.d.sync += [data_none.eq(~to_host), data_one.eq(to_host & (beats == 1))]
        with m.If(plan):
            m.d.sync += [
                address_valid.eq(1),
                bus_address.eq(address),
                bus_length.eq(beats - 1),
                address.eq(address + beats * bus_bytes),
                beats_left.eq(beats_left - beats),
                data_left.eq(Mux(to_host, beats, 0)),
            ]
        with m.Elif(address_ready):
            m.d.sync += address_valid.eq(0)
        if follows:
            with m.If(promote):
                m.d.sync += [bursts.eq(later + plan - answered), later.eq(0)]
            with m.Else():
                m.d.sync += [
                    bursts.eq(bursts + (plan & ~behind) - answered),
                    later.eq(later + (plan & behind)),
                ]
        else:
            m.d.sync += bursts.eq(bursts + plan - answered)

        # Beats behind the oldest transfer's last are the next one's.
        taking = self.busy & (bursts != 0) if follows else self.busy
        # Host memory to SRAM. After an error the rest of the bursts under way is taken and dropped.
        m.d.comb += [
            axi.rready.eq(taking & ~to_host & to_sram.ready),
            to_sram.valid.eq(axi.rvalid & axi.rready & ~axi.rresp[1] & ~error),
            to_sram.data.eq(axi.rdata),
            to_sram.out_ready.eq(sram.ready & ~to_host),
        ]

        # SRAM to host memory: a register stage holds the beat on the bus.
        m.d.comb += [
            to_bus.valid.eq(to_bus.pending),
            to_bus.data.eq(sram.rdata),
            put.eq(to_bus.out_valid & ~data_none & (~axi.wvalid | axi.wready)),
            to_bus.out_ready.eq(~data_none & (~axi.wvalid | axi.wready)),
        ]
        if config.pipelined:
            # An answer to the next transfer's data waits until the end of the oldest one has been told.
            m.d.comb += axi.bready.eq((bursts != 0) | ~self.busy)
        else:
            m.d.comb += axi.bready.eq(1)
        m.d.sync += to_bus.pending.eq(sram.valid & sram.ready & to_host)
        with m.If(put):
            m.d.sync += [
                axi.wvalid.eq(1),
                axi.wdata.eq(to_bus.out_data),
                axi.wstrb.eq(to_bus.out_mask),
                axi.wlast.eq(data_one),
            ]
        with m.Elif(axi.wready):
            m.d.sync += axi.wvalid.eq(0)

        m.d.comb += [
            sram.valid.eq(Mux(to_host, self.busy & (words_left != 0) & to_bus.ready, to_sram.out_valid)),
            sram.write.eq(~to_host),
            sram.address.eq(word),
            sram.data.eq(to_sram.out_data),
            sram.mask.eq(to_sram.out_mask),
            self.moved.eq((axi.rvalid & axi.rready) | (axi.wvalid & axi.wready)),
        ]
        with m.If(sram.valid & sram.ready):
            m.d.sync += [word.eq(word + 1), words_left.eq(words_left - 1)]

        # SLVERR and DECERR have the high bit of the response.
        failed = Mux(to_host, axi.bvalid & axi.bready & axi.bresp[1], axi.rvalid & axi.rready & axi.rresp[1])
        with m.If(self.busy & failed):
            m.d.sync += error.eq(1)
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        if follows:
            ended_error = Signal()
            m.d.comb += self.error.eq(Mux(self.done, error, ended_error))
            with m.If(self.done):
                m.d.sync += [ended_error.eq(error), error.eq(behind & failed), self.busy.eq(behind)]
        load = [
            word.eq(data_command.sram_address // word_bytes),
            words_left.eq(_chunks(data_command.bytes, word_lane, word_bytes, lane)),
        ]
        with m.If(begin):
            m.d.sync += [
                self.busy.eq(1),
                *([] if follows else [error.eq(0)]),
                to_host.eq(command.to_host),
                address.eq(command.host_address[bus_bytes.bit_length() - 1 :] * bus_bytes),
                beats_left.eq(_chunks(command.bytes, bus_lane, bus_bytes, lane)),
                *([all_planned.eq(command.bytes == 0)] if config.pipelined else []),
                *([] if follows else load),
            ]
        if follows:
            with m.If(begin_data):
                m.d.sync += load
        return m


def _lane(address: Value, lane_bytes: int, lanes: int) -> Value:
    """The lane, of a chunk of `lanes`, that a byte address is in."""
    return address[lane_bytes.bit_length() - 1 :][: lanes.bit_length() - 1]


def _chunks(count: Value, lane: Value, chunk_bytes: int, lane_bytes: int) -> Value:
    """Chunks that `count` bytes touch from `lane` on; 0 for no bytes."""
    shift = chunk_bytes.bit_length() - 1
    first = Cat(C(0, lane_bytes.bit_length() - 1), lane)
    return Mux(count == 0, 0, (count + first + chunk_bytes - 1)[shift:])
