"""The rate control unit's interface, which both structures (`control.py`, `tree.py`) have."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import NicConfig
from ..rtc import PASSED_BITS

__all__ = [
    "CHARGE_BITS",
    "DispatchSignature",
    "RateControlSignature",
    "charge",
    "charged_bytes",
    "dispatched_layout",
    "fine",
    "flow_bits",
    "whole",
]

CHARGE_BITS = 14
"""Width of a number of bytes that a packet is charged for: up to the longest MTU less one; 0 is a whole packet."""


def flow_bits(config: NicConfig) -> int:
    """Width of a flow number, at least 1."""
    return max(1, (config.flows - 1).bit_length())


def dispatched_layout(config: NicConfig) -> data.StructLayout:
    """A packet that is dispatched.

    - `flow`: its flow.
    - `last`: the flow has no sendable token left.
    - `bytes`, only with `rate_charge` bytes: bytes that it is charged for; 0 for an IDT, whatever its bytes are.
    """
    charged: dict[str, int] = {"bytes": CHARGE_BITS} if config.rate_charge == "bytes" else {}
    return data.StructLayout({"flow": unsigned(flow_bits(config)), "last": 1, **charged})


def fine(config: NicConfig, ticks: Value) -> Value:
    """A time of whole ticks, with the fraction that an NDT has (`NicConfig.rate_fraction_bits`)."""
    return Cat(Const(0, config.rate_fraction_bits), ticks)


def whole(config: NicConfig, time: Value) -> Value:
    """A time with a fraction in ticks, rounded up: the first tick that is not before it; `rtc_bits` bits."""
    bits = config.rate_fraction_bits
    return (time[bits:] + time[:bits].any())[: config.rtc_bits] if bits else time


def charged_bytes(m: Module, config: NicConfig, payload: data.View[data.StructLayout]) -> Signal | None:
    """The bytes that a dispatched packet is charged for: its own, at most the MTU, or the whole unit if it says 0.

    None on a card that charges packets.
    """
    if config.rate_charge != "bytes":
        return None
    amount = Signal(config.rate_fraction_bits + 1, name="charged_bytes")
    with m.If(payload.bytes == 0):
        m.d.comb += amount.eq(config.charge_unit_bytes)
    with m.Elif(payload.bytes > config.mtu_bytes):
        m.d.comb += amount.eq(config.mtu_bytes)
    with m.Else():
        m.d.comb += amount.eq(payload.bytes)
    return amount


def charge(config: NicConfig, idt: Value, amount: Value | None) -> Value:
    """IDT x bytes / unit, exactly: with the fraction of an NDT. `amount`: from `charged_bytes`; None: the IDT."""
    return idt if amount is None else (idt * amount)[: config.rtc_bits - 2 + config.rate_fraction_bits]


class DispatchSignature(wiring.Signature):
    """The unit's decision. Members:

    - `valid` (out): there is a flow to dispatch.
    - `flow` (out): that flow.

    It is like a stream, but an offer may change: a flow with an earlier NDT may come. It is taken by
    `RateControlSignature.dispatched`.
    """

    def __init__(self, config: NicConfig) -> None:
        super().__init__({"valid": Out(1), "flow": Out(flow_bits(config))})


class RateControlSignature(wiring.Signature):
    """A rate control unit, seen from inside. Members (all times are RTC values or ticks):

    - `rtc` (in, `rtc_bits`): the clock.
    - `dispatch` (out, `DispatchSignature`): the offer.
    - `dispatched` (in, stream of `dispatched_layout`): a packet of the flow is dispatched.
    - `enqueue` (in, stream of a flow): a flow that is not valid becomes so, with a token that may be sent. Nothing
      changes for a valid one.
    - `clear` (in, stream of a flow): the flow becomes invalid; its NDT stays.
    - `select` (in, a flow), `idt`, `ndt` (out, `rtc_bits`), `valid` (out): the state of a flow.
    - `write_idt`, `write_ndt` (in), `write_ticks` (in, `rtc_bits`): set IDT or NDT of the selected flow. The write is
      taken when `write_ready` (out) is up.
    - `next_valid` (out), `next_ndt` (out, `rtc_bits`): the valid flow that goes first, whether on offer or not yet.
    - `settled` (out): the state shown is that of `select`, and every command that was taken has acted.
    - `rests` (out), only if `skippable`: nothing but the clock and the scan goes on by itself.
    - `passed` (in, `PASSED_BITS`), only if `skippable`: so many cycles more are over with this one. For a tree
      they are a multiple of `rate_scan_cycles`, or begin and end where its scan looks at no flow.

    An NDT may have a fraction (`rate_charge` bytes): it is shown rounded up to a tick, and written without one.
    Commands for a flow that does not exist do nothing.
    """

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        flow = flow_bits(config)
        super().__init__(
            {
                "rtc": In(config.rtc_bits),
                "dispatch": Out(DispatchSignature(config)),
                "dispatched": In(stream.Signature(dispatched_layout(config))),
                "enqueue": In(stream.Signature(flow)),
                "clear": In(stream.Signature(flow)),
                "select": In(flow),
                "idt": Out(config.rtc_bits),
                "ndt": Out(config.rtc_bits),
                "valid": Out(1),
                "write_idt": In(1),
                "write_ndt": In(1),
                "write_ticks": In(config.rtc_bits),
                "write_ready": Out(1),
                "settled": Out(1),
                "next_valid": Out(1),
                "next_ndt": Out(config.rtc_bits),
            }
            | ({"rests": Out(1), "passed": In(PASSED_BITS)} if skippable else {})
        )
