"""A block that a card has only where its configuration asks for it: the protocol.

Each is one file, with its needs, its registers, its events, and the way in which it is joined. `blocks.py` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from ..config import NicConfig
from ..register_bank import Name, RegisterBank
from ..registers import Register
from .dma.dma_gate import DmaGate
from .dma.host_dma import HostDma
from .dma.receive_engine import ReceiveEngine
from .dma.send_engine import SendEngine
from .doorbell import Doorbell
from .host_port import HostPort
from .link_port.packet_interface import PacketInterface
from .owners.checked_dma import CheckedDma
from .rtc import Rtc

__all__ = ["Card", "EngineFront", "HostEngine", "Joined", "NicBlock", "hold"]

Kind = TypeVar("Kind", bound="NicBlock")


@dataclass(frozen=True, kw_only=True)
class EngineFront:
    """The side of an engine that the registers see, with or without a queue.

    - `valid`, `command`: they start a transfer.
    - `busy`: one is under way or waits.
    - `ended`: a transfer, or a list of them, ends in this cycle; a bit a processor, where each has a queue.
    """

    valid: Value
    command: data.View
    busy: Value
    ended: Value


@dataclass(frozen=True)
class HostEngine:
    """The host DMA engine as the firmware has it.

    - `own`: for its own transfers.
    - `checked`, if the card has regions: for those that are checked.
    """

    own: HostDma | DmaGate
    checked: CheckedDma | None = None


class Card(Protocol):
    """The parts of a card (`Nic`) that a block may join itself to. They are there before any block is connected.

    - `config`, `skippable`: as the card's.
    - `registers`, `host_registers`: the banks, with the registers of every block that the card has.
    - `host_port`, `doorbell`, `host_dma`, `send`, `receive`, `packets`, `rtc`: blocks that every card has.
    - `host_engine`: the host DMA engine as the firmware has it.
    - `credits_out`: flits that were sent and whose credit has not come back.
    - `tx`, `passed`: members of `NicSignature`; `passed` only if `skippable`.
    - `block(kind)`: the card's block of this class. Raises KeyError if it has none.
    """

    config: NicConfig
    skippable: bool
    registers: RegisterBank
    host_registers: RegisterBank
    host_port: HostPort
    doorbell: Doorbell
    host_dma: HostDma
    send: SendEngine
    receive: ReceiveEngine
    packets: PacketInterface
    rtc: Rtc
    host_engine: HostEngine
    credits_out: Signal
    tx: Any
    passed: Any

    def block(self, kind: type[Kind]) -> Kind:
        """The card's block of this class. Raises KeyError if it has none."""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """The lines that a connected block gives its card.

    - `events`: the value that sets each bit of ISR that the block's `registers` declare, by the bit's name. A value of
      two bits has one for each of two processors.
    - `host_events`: the same for HOST_ISR and `host_registers`.
    - `managers`: `Axi4Signature` interfaces onto host memory, beside the DMA engine's.
    - `rests`: high as long as the block counts no cycles and walks through no table. A simulator may then pass over
      cycles, whatever `moved` says.
    - `moved`: something moved in this cycle, for the card's `activity`, and so for the watchdog.
    - `credits_home`: from the next cycle on no credit is out, as the link begins anew.
    """

    events: Mapping[str, Value] = field(default_factory=dict)
    host_events: Mapping[str, Value] = field(default_factory=dict)
    managers: Sequence[Any] = ()
    rests: Sequence[Value] = ()
    moved: Sequence[Value] = ()
    credits_home: Sequence[Value] = ()


class NicBlock:
    """Base of the blocks that a card may have.

    A block is a file with a subclass, and a line in `NIC_BLOCKS` of `blocks.py`. The subclass sets:

    - `name`: the block's name, as errors call it.
    - `registers`: the registers that it adds to the processor's map, from an `.rdl` file beside it (`load`) or declared
      in place (`declare`). A register that others declare too (ISR, say) has only the block's own fields there.
    - `host_registers`: the same for the host's map.
    - `common`: its registers with stored fields that two processors share, as they set the hardware and say nothing of
      the next access. Each processor has its own of all other registers.
    - `names`: the things that its commands name (`names.py`). A command of another block may name the block's things,
      too.
    - `before`: "host_dma", "send" or "receive", if the block stands between that engine and its registers (`front`).

    It gives `connect`, and `wanted` if other fields than `NicConfig.blocks` ask for it. The components of the block are
    made in `__init__`, and are public attributes. A block that stands before the host DMA engine itself sets
    `host_engine` there.

    A card without the block has none of its registers, event bits and logic: registers read as zero.
    """

    name: ClassVar[str]
    registers: ClassVar[Mapping[str, Register]] = {}
    host_registers: ClassVar[Mapping[str, Register]] = {}
    common: ClassVar[frozenset[str]] = frozenset()
    names: ClassVar[Mapping[str, tuple[Name, ...]]] = {}
    before: ClassVar[str | None] = None
    host_engine: HostEngine | None = None

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        self.config, self.skippable = config, skippable

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """Whether the card of this configuration has the block.

        It has if `NicConfig.blocks` names it, or as a subclass says from other fields.
        """
        return cls.name in config.blocks

    def connect(self, m: Module, card: Card) -> Joined:
        """Add the components as submodules of `m`, and join them to the card."""
        return Joined()

    def front(self, m: Module, card: Card) -> EngineFront:
        """The engine that `before` names, as its registers see it, with the block before it."""
        raise NotImplementedError(f"{type(self).__name__} has no front()")


def hold(
    m: Module, name: str, r: RegisterBank, register: Any, stream: Any, fields: Mapping[str, Value]
) -> Value:
    """Gives a write of `register` to `stream`, with `fields` as they are then, and holds it until it is taken.

    It is held as long as the value returned is up. A write before that does nothing. Two processors hold one each, and
    take turns.
    """
    if not hasattr(r, "who"):
        held = Signal(name=f"{name}_held")
        kept = Signal(stream.payload.shape(), name=f"{name}_kept")
        m.d.comb += [stream.valid.eq(held), stream.payload.eq(kept)]
        with m.If(stream.ready):
            m.d.sync += held.eq(0)
        with m.If(register.w_stb & ~held):
            m.d.sync += held.eq(1)
            m.d.sync += [kept[field].eq(value) for field, value in fields.items()]
        return held
    both = [Signal(name=f"{name}_held_{i}") for i in range(2)]
    kepts = [Signal(stream.payload.shape(), name=f"{name}_kept_{i}") for i in range(2)]
    turn = Signal(name=f"{name}_turn")
    m.d.comb += [
        stream.valid.eq(Mux(turn, both[1], both[0])),
        stream.payload.eq(Mux(turn, kepts[1].as_value(), kepts[0].as_value())),
    ]
    # The turn stays with a write that is on offer.
    with m.If(~stream.valid | stream.ready):
        m.d.sync += turn.eq(~turn)
    for i in range(2):
        with m.If(stream.ready & (turn == i)):
            m.d.sync += both[i].eq(0)
        with m.If(register.w_stb & (r.who == i) & ~both[i]):
            m.d.sync += both[i].eq(1)
            m.d.sync += [kepts[i][field].eq(value) for field, value in fields.items()]
    return Mux(r.who, both[1], both[0])
