"""Owners of doorbell pages, joined: owners of channels, shadow windows, receive doorbells."""

from __future__ import annotations

from pathlib import Path

from amaranth import Module, Mux

from ...config import NicConfig
from ...register_bank import Name
from ...registers import load
from ..block import Card, Joined, NicBlock

__all__ = ["OWNER", "ChannelOwners", "MergedDoorbells", "ReceiveDoorbells", "ShadowWindows"]

RDL = Path(__file__).with_suffix(".rdl")
OWNER = Name(field="owner", things="owners")
"""The owner that a command names."""


class ChannelOwners(NicBlock):
    """DOORBELL_CHANNEL: the owner of a channel, and its priority."""

    name = "channel_owners"
    registers = load(RDL, name)
    names = {
        "DOORBELL_CHANNEL": (
            Name(field="channel", things="channels"),
            Name(field="priority", things="doorbell_priorities"),
            OWNER,
        )
    }

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With owners, or more than one priority."""
        return bool(config.owners) or config.doorbell_priorities > 1

    def connect(self, m: Module, card: Card) -> Joined:
        """To the doorbells."""
        r, doorbell = card.registers, card.doorbell
        row = r.DOORBELL_CHANNEL.w_data
        m.d.comb += [
            doorbell.assign.channel.eq(row.channel),
            doorbell.assign.owner.eq(row.owner),
            doorbell.assign.priority.eq(row.priority),
            doorbell.assign.open.eq(row.open),
            doorbell.assigns.eq(r.DOORBELL_CHANNEL.w_stb),
        ]
        return Joined()


class ShadowWindows(NicBlock):
    """A window of each owner's page onto the SRAM."""

    name = "shadow_windows"
    registers = load(RDL, name)
    names = {"SHADOW_WINDOW": (OWNER,)}

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `shadow_windows`."""
        return config.shadow_windows

    def connect(self, m: Module, card: Card) -> Joined:
        """To the host port."""
        r, host = card.registers, card.host_port
        m.d.comb += [
            host.shadow.owner.eq(r.SHADOW_WINDOW.w_data.owner),
            host.shadow.bytes.eq(r.SHADOW_WINDOW.w_data.bytes),
            host.shadow.address.eq(r.SHADOW_ADDRESS.value.address),
            host.shadows.eq(r.SHADOW_WINDOW.w_stb),
        ]
        return Joined()


class ReceiveDoorbells(NicBlock):
    """The receive doorbells' own queue."""

    name = "receive_doorbells"
    registers = load(RDL, name)

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `receive_doorbells` separate."""
        return config.receive_doorbells == "separate"

    def connect(self, m: Module, card: Card) -> Joined:
        """To the doorbells."""
        r, doorbell = card.registers, card.doorbell
        shown, valid, head = (
            r.DOORBELL_RECEIVE_QUEUE.r_data,
            doorbell.receive_head_valid,
            doorbell.receive_head,
        )
        m.d.comb += [
            shown.channel.eq(Mux(valid, head.channel, 0)),
            shown.value.eq(Mux(valid, head.word, 0)),
            shown.valid.eq(valid),
            doorbell.receive_pop.eq(r.DOORBELL_RECEIVE_QUEUE.r_stb),
        ]
        return Joined(events={"receive_doorbell": doorbell.receive_pending})


class MergedDoorbells(NicBlock):
    """Receive doorbells among the send doorbells: DOORBELL_SELECT selects the word of either."""

    name = "merged_doorbells"
    registers = load(RDL, name)

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `receive_doorbells` merged."""
        return config.receive_doorbells == "merged"

    def connect(self, m: Module, card: Card) -> Joined:
        """To the doorbells. The top bit of `select` chooses the word, where there are two a channel."""
        m.d.comb += card.doorbell.select[-1].eq(card.registers.DOORBELL_SELECT.value.receive)
        return Joined()
