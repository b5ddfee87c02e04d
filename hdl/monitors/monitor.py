"""The base of all monitors: named rules, a flag each, and how proofs and simulations use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from amaranth import Cat, Format, Module, Signal, Value
from amaranth.hdl import Assert
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import ConfigError

__all__ = ["CYCLE_BITS", "Monitor", "Rule", "Side", "at_least", "held"]

Side = Literal["sender", "receiver"]
"""The side that keeps a rule. The sender begins: it is the transmitter, the manager or the requester."""
CYCLE_BITS = 32
"""Width of the count of cycles that a message of a debug build shows."""


@dataclass(frozen=True)
class Rule:
    """A rule of an interface: the `side` that has to keep it, and in `broken` what has happened when it does not."""

    side: Side
    broken: str


class Monitor(wiring.Component):
    """Watches an interface, of which all signals are inputs here, and tells which rules are broken.

    Parameters: `observed`, the width or shape of each input by its path in the interface (`request.valid`), whose dots
    become `__` in the name of the member.

    Members:

    - one input for each observed signal;
    - `violation` (out): a struct with a bit for each of `rules`. A bit is set in the cycle in which its rule is broken.
      After that the monitor goes on with what it has seen, and what else it tells may follow from the first violation.

    A subclass has `rules`, by their names, and drives `violation` in `elaborate`.

    Latency: none. Throughput: a cycle a cycle. Reset: nothing has been seen.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}

    def __init__(self, observed: Mapping[str, Any]) -> None:
        self._paths = tuple(observed)
        members: dict[str, Any] = {_member(path): In(shape) for path, shape in observed.items()}
        members["violation"] = Out(data.StructLayout(dict.fromkeys(self.rules, 1)))
        super().__init__(members)

    @classmethod
    def of(cls, signature: Any, **parameters: Any) -> Monitor:
        """A monitor for an interface of this signature. `parameters` are those that the signature does not tell."""
        raise NotImplementedError

    def watch(self, m: Module, interface: Any) -> None:
        """Let the monitor see `interface`, whichever side of it that is."""
        for path in self._paths:
            value = interface
            for step in path.split("."):
                value = getattr(value, step)
            m.d.comb += Value.cast(getattr(self, _member(path))).eq(Value.cast(value))

    def broken(self, side: Side | None = None) -> Value:
        """The violations of the rules that `side` has to keep, or of all rules: a bit each."""
        flags = (
            Value.cast(self.violation[name]) for name in self.rules if side in (None, self.rules[name].side)
        )
        return Cat(*flags)

    def stop(self, m: Module, name: str, *, domain: str = "sync", counts: bool = True) -> None:
        """Let a simulation stop at the first violation. The message has `name`, the rule and the cycle since reset.

        The statement is an assertion at the clock edge. So Verilog has it too, and a proof may have it. Without
        `counts` there is no cycle in the message and no register that counts: a block at rest stays at rest.
        """
        cycle = Signal(CYCLE_BITS, name="cycle")
        if counts:
            m.d[domain] += cycle.eq(cycle + 1)
        for rule, text in self.rules.items():
            told = f"{name}: rule {rule} broken by the {text.side}: {text.broken}"
            message = Format(told + ", cycle {}", cycle) if counts else Format(told)
            m.d[domain] += Assert(~Value.cast(self.violation[rule]), message)


def _member(path: str) -> str:
    return path.replace(".", "__")


def held(m: Module, name: str, valid: Value, ready: Value, *payload: Value) -> tuple[Value, Value]:
    """Conditions of this cycle on an item that was offered in the cycle before and not taken.

    They are: its `valid` has gone; it is still offered, and has changed.
    """
    now = Cat(*payload)
    before, waits = Signal(len(now), name=f"{name}_before"), Signal(name=f"{name}_waits")
    m.d.sync += [before.eq(now), waits.eq(valid & ~ready)]
    return waits & ~valid, waits & valid & (now != before)


def at_least(kind: type, name: str, value: int, least: int) -> int:
    """The value. Raises ConfigError if it is below `least`."""
    if value < least:
        raise ConfigError(f"{kind.__name__}: {name} = {value}: at least {least}")
    return value
