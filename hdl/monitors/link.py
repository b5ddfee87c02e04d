"""The monitor of a link with credits (`hdl/link.py`)."""

from __future__ import annotations

from typing import Any

from amaranth import Array, Module, Mux, Signal, Value

from ..config import LinkConfig
from ..link import FlitLayout, LinkSignature
from .monitor import Monitor, Rule, at_least

__all__ = ["LinkMonitor"]


class LinkMonitor(Monitor):
    """Watches a link, at either end of its wire.

    Parameters: `config`, the link's; `depth`, the receiver's buffer in flits a VL. Raises ConfigError for a depth
    below 1.

    Members: `payload`, `valid`, `credit_vl`, `credit_valid`, and with `LinkConfig.restart` also `restart`,
    `credit_restart` (in), as in `LinkSignature`; `violation` (out, a bit a rule).

    - Flits that were sent and have given no credit back are at most `depth` a VL.
    - On each VL a packet is a head, flits without a mark, and a tail. A flit may be both.
    - A VL's number, of flit or credit, is below `vls`.
    - A credit comes back for a flit that was sent before, so credits never exceed `depth`.

    While one of the levels of `link_restart.py` is high all credits are home and no packet is begun. A flit that a
    reset end does not take is no violation, but one beside `restart` is.
    """

    rules = {
        "no_credit": Rule("sender", "a flit was sent without a credit"),
        "vl_range": Rule("sender", "a flit's VL does not exist"),
        "head_inside": Rule("sender", "a head came inside of a packet"),
        "no_head": Rule("sender", "a packet began without a head"),
        "flit_in_restart": Rule("sender", "a flit was sent beside `restart`"),
        "credit_range": Rule("receiver", "a credit's VL does not exist"),
        "credit_unearned": Rule("receiver", "a credit came back for no flit"),
    }

    def __init__(self, config: LinkConfig, *, depth: int) -> None:
        self._config, self._depth = config, at_least(type(self), "depth", depth, 1)
        levels = {"restart": 1, "credit_restart": 1} if config.restart else {}
        super().__init__(
            {"payload": FlitLayout(config), "valid": 1, "credit_vl": config.vl_bits, "credit_valid": 1}
            | levels
        )

    @classmethod
    def of(cls, signature: LinkSignature, **parameters: Any) -> LinkMonitor:
        """A monitor for a link of this signature, with the `depth` of its receiver."""
        return cls(signature.config, **parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, depth, told, flit = self._config.vls, self._depth, self.violation, self.payload
        down: Value = Signal(name="down")
        if self._config.restart:
            m.d.comb += [
                down.eq(self.restart | self.credit_restart),
                told.flit_in_restart.eq(self.valid & self.restart),
            ]
        sent, back = self.valid & ~down, self.credit_valid & ~down
        under_way = [Signal(range(depth + 2), name=f"under_way_{vl}") for vl in range(vls)]
        inside = Signal(vls, name="inside")
        for vl in range(vls):
            one, credit = sent & (flit.vl == vl), back & (self.credit_vl == vl)
            count = under_way[vl]
            step = Mux(one & (count <= depth), 1, 0) - Mux(credit & (count != 0), 1, 0)
            m.d.sync += count.eq(Mux(down, 0, count + step))
            with m.If(one):
                m.d.sync += inside[vl].eq(~flit.tail)
        with m.If(down):
            m.d.sync += inside.eq(0)
        # VLs that do not exist are judged by their own rules alone.
        spare = [0] * ((1 << self._config.vl_bits) - vls)
        counts = Array([*under_way, *spare])
        ours, theirs = Signal(name="ours"), Signal(name="theirs")
        m.d.comb += [
            ours.eq(sent & (flit.vl < vls)),
            theirs.eq(back & (self.credit_vl < vls)),
            told.vl_range.eq(sent & (flit.vl >= vls)),
            told.credit_range.eq(back & (self.credit_vl >= vls)),
            told.no_credit.eq(ours & (counts[flit.vl] >= depth)),
            told.credit_unearned.eq(theirs & (counts[self.credit_vl] == 0)),
            told.head_inside.eq(ours & flit.head & inside.bit_select(flit.vl, 1)),
            told.no_head.eq(ours & ~flit.head & ~inside.bit_select(flit.vl, 1)),
        ]
        return m
