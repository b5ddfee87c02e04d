"""The packet interface: credits and pacing towards the link, VL buffers from it."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...arbiter.round_robin import RoundRobinArbiter
from ...config import ConfigError, NicConfig
from ...link import FlitLayout, LinkPacer, LinkSignature
from ...link_guard import GUARD_BITS
from ...link_restart import CUTS_BITS, TransmitRestart, receive_register
from ...router.credits import Credits
from ...router.flit import BufferedFlitLayout
from ...router.vl_buffer import VlBuffer

__all__ = ["PacketInterface"]


class PacketInterface(wiring.Component):
    """The card's end of its link.

    Parameters: `downstream_flits`: depth of the receive buffer at the link's other end, flits a VL, at least
    2 (ConfigError).

    Members:

    - `tx` (out, `LinkSignature`): to the network, through `delay_cycles` registers each way, as every transmitter.
    - `rx` (in, `LinkSignature`): from the network. A credit goes out in the cycle after its flit left the buffer.
    - `send` (in, stream of `FlitLayout`): whole packets, one after the other. A flit is taken, and stands on `tx` in
      the same cycle (before the delay), when its VL has a credit and the link a slot (`LinkPacer`).
    - `receive` (out, stream of `FlitLayout`): whole packets, one after the other, held until taken. The VLs with a flit
      take turns (round robin), each for a packet.
    - `moved` (out): a flit is sent, comes in, or is taken from the buffers in this cycle.

    These are there only with `LinkConfig.restart`:

    - `down` (out): an end of the link was reset, and the link does not work yet. Packets that were cut are ended in the
      buffers, and are thrown away flit by flit from `send`.
    - `restarting` (out): `tx` does not work yet, or goes down in this cycle.
    - `cuts_out`, `cuts_in` (out, 8): packets cut since reset, modulo 2^8.
    - `lost_in` (out, 16): flits thrown away as they came since reset, modulo 2^16.
    - `begun_anew_out`, `begun_anew_in` (out, 16), only with `LinkConfig.guard_cycles`: times that the guards of `tx`
      and `rx` began them anew since reset, modulo 2^16.

    Buffers have `input_buffer_flits` a VL. A packet of one VL that comes in slowly holds the packets of the others, as
    the receive engine takes one at a time.

    Throughput: a flit a cycle each way, as far as the link's rate and the credits go. A credit of this end is back at
    the transmitter 3 cycles after its flit was on the link, if the flit is taken at once. Latency: a flit on `rx` in
    cycle t is on `receive` in t + 2. Reset: buffers empty, all credits of both ends home.
    """

    def __init__(self, config: NicConfig, *, downstream_flits: int) -> None:
        if downstream_flits < 2:
            raise ConfigError(f"PacketInterface: downstream_flits = {downstream_flits}: at least 2")
        self.config = config
        self.downstream_flits = downstream_flits
        super().__init__(
            {
                "tx": Out(LinkSignature(config.link)),
                "rx": In(LinkSignature(config.link)),
                "send": In(stream.Signature(FlitLayout(config.link))),
                "receive": Out(stream.Signature(FlitLayout(config.link))),
                "moved": Out(1),
            }
            | self._restart_members()
            | self._more_members()
        )

    def _restart_members(self) -> dict[str, wiring.Member]:
        if not self.config.link.restart:
            return {}
        cuts = {"cuts_out": Out(CUTS_BITS), "cuts_in": Out(CUTS_BITS), "lost_in": Out(16)}
        if self.config.link.guard_cycles:
            cuts |= {"begun_anew_out": Out(GUARD_BITS), "begun_anew_in": Out(GUARD_BITS)}
        return {"down": Out(1), "restarting": Out(1), **cuts}

    def _more_members(self) -> dict[str, wiring.Member]:
        """Members of a port that has more."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sent = self._transmit(m)
        arrived, taken = self._receive(m)
        restarts = self.down if self.config.link.restart else 0
        m.d.comb += self.moved.eq(sent | arrived | taken | restarts)
        return m

    def _transmit(self, m: Module) -> Value:
        """Logic of `send` and `tx`; returns whether a flit is sent in this cycle."""
        link, send, tx = self.config.link, self.send, self.tx
        m.submodules.credits = credits = Credits(
            vls=link.vls,
            depth=self.downstream_flits,
            restarts=bool(link.restart),
            guarded=link.guard_cycles > 0,
        )
        m.submodules.pacer = pacer = LinkPacer(link)
        vl = send.payload.vl
        sent = Signal()
        allowed, sends = credits.available, sent
        if link.restart:
            m.submodules.restart_out = restart = TransmitRestart(link)
            allowed = allowed | restart.cut
            sends = sent & ~(restart.cut >> vl)[0]
        m.d.comb += [
            send.ready.eq(pacer.slot & (allowed >> vl)[0]),
            sent.eq(send.valid & send.ready),
            pacer.sent.eq(sent),
            credits.spend.eq(sends),
            credits.spend_vl.eq(vl),
        ]
        near, far, near_back = [sends, send.payload], [tx.valid, tx.payload], [tx.credit_valid, tx.credit_vl]
        if link.restart:
            near.append(restart.restart)
            far.append(tx.restart)
            near_back.append(tx.credit_restart)
        flit = self._delayed(m, Cat(near), "flit")
        back = self._delayed(m, Cat(near_back), "credit")
        m.d.comb += [
            Cat(far).eq(flit),
            Cat(credits.refund, credits.refund_vl).eq(back[: 1 + link.vl_bits]),
        ]
        if link.restart:
            m.d.comb += [
                restart.peer.eq(back[-1]),
                restart.moved.eq(sent),
                restart.vl.eq(vl),
                restart.tail.eq(send.payload.tail),
                credits.stop.eq(restart.stop),
                self.restarting.eq(restart.stop),
                self.cuts_out.eq(restart.cuts),
            ]
        if link.guard_cycles:
            waits = Signal(link.vls)
            m.d.comb += [
                waits.eq(Mux(send.valid, 1 << vl, 0)),
                restart.waiting.eq(waits & ~allowed),
                restart.breach.eq(credits.excess),
                self.begun_anew_out.eq(restart.begun_anew),
            ]
        return sent

    def _delayed(self, m: Module, value: Value, name: str) -> Value:
        """`value` after the registers of a long wire."""
        for stage in range(self.config.link.delay_cycles):
            register = Signal(len(value), name=f"{name}_wire_{stage + 1}")
            m.d.sync += register.eq(value)
            value = register
        return value

    def _receive(self, m: Module) -> tuple[Value, Value]:
        """Logic of `rx` and `receive`.

        Returns whether a flit stands in the link's register, and whether one leaves its buffer, in this cycle.
        """
        link, rx, receive = self.config.link, self.rx, self.receive
        vls = link.vls
        m.submodules.buffer = buffer = VlBuffer(
            shape=BufferedFlitLayout(link), vls=vls, depth=self.config.input_buffer_flits
        )
        arrived = Signal()
        arrival = Signal(FlitLayout(link))
        half = receive_register(m, link, rx, arrived, arrival, buffer)
        if half is not None:
            m.d.comb += [
                self.down.eq(half.busy | self.restarting),
                self.cuts_in.eq(half.cuts),
                self.lost_in.eq(half.lost),
            ]
            if link.guard_cycles:
                refused = m.submodules.guard_in.refused
                m.d.comb += [
                    self.begun_anew_in.eq(half.begun_anew),
                    self.lost_in.eq((half.lost + refused)[:GUARD_BITS]),
                ]
        m.d.comb += [
            buffer.write_valid.eq(arrived),
            buffer.write_vl.eq(arrival.vl),
            buffer.write_data.data.eq(arrival.data),
            buffer.write_data.head.eq(arrival.head),
            buffer.write_data.tail.eq(arrival.tail),
        ]

        # The VL whose packet is on `receive`, one-hot; none between packets, when every VL's first flit is a head.
        current = Signal(vls)
        m.submodules.arbiter = arbiter = self._turns()
        taken = Signal()
        m.d.comb += [
            arbiter.requests.eq(
                self._offers(m, buffer, arrived & arrival.tail, taken & receive.payload.tail)
            ),
            arbiter.advance.eq(~current.any()),
            buffer.read_select.eq(Mux(current.any(), current, arbiter.grant)),
            receive.valid.eq((buffer.non_empty & buffer.read_select).any()),
            receive.payload.data.eq(buffer.read_data.data),
            receive.payload.head.eq(buffer.read_data.head),
            receive.payload.tail.eq(buffer.read_data.tail),
            receive.payload.vl.eq(buffer.read_vl),
            taken.eq(receive.valid & receive.ready),
            buffer.pop.eq(taken),
        ]
        # The VL is kept from the first cycle on, taken or not, since the offer of a stream must stay.
        m.d.sync += current.eq(Mux(taken & receive.payload.tail, 0, buffer.read_select))
        m.d.sync += [rx.credit_valid.eq(taken), rx.credit_vl.eq(buffer.read_vl)]
        return arrived, taken

    def _turns(self) -> Any:
        """The arbiter of the VL whose packet is next."""
        return RoundRobinArbiter(size=self.config.link.vls)

    def _offers(self, m: Module, buffer: VlBuffer, comes: Value, goes: Value) -> Value:
        """VLs whose next packet may begin.

        - `comes`: a packet's last flit is written into the buffer in this cycle.
        - `goes`: a packet's last flit is taken out of it in this cycle.
        """
        return buffer.non_empty
