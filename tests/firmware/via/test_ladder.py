"""The ladder: the published designs, in their order, on a card that can have them all."""

from __future__ import annotations

import pytest
from lanikai.firmware.via.ladder import LADDER, rung
from lanikai.firmware.via.layout import ViaLayout
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.sim.published import table


def test_the_designs_are_the_published_ones_in_their_order():
    assert list(LADDER) == table("via-scalability")["ladder"]


def test_each_design_is_one_step_from_another():
    """Its name says what changes."""
    names = list(LADDER)
    before = dict(zip(names[1:], [*names[:4], names[3], names[5]], strict=True))
    changed = {
        name: {
            key
            for kind in ("nic_changes", "via_changes")
            for key in {**getattr(LADDER[name], kind), **getattr(LADDER[before[name]], kind)}
            if getattr(LADDER[name], kind).get(key) != getattr(LADDER[before[name]], kind).get(key)
        }
        for name in names[1:]
    }
    queues = {"host_dma_queue_entries", "send_queue_entries", "receive_queue_entries"}
    assert list(changed.values()) == [
        {"design", "send_buffers", "receive_buffers"},
        queues,
        {"doorbell"},
        {"descriptors"},
        {"processors", "receive_doorbells"},
        {"descriptors", "shadow_windows"},
    ]


@pytest.mark.parametrize("name", LADDER)
def test_every_design_fits_the_card_of_chapter_5(name):
    nic = rung(name).nic(preset(NicConfig, "via5"))
    layout = ViaLayout(nic, rung(name).config(queue_entries=64))
    assert layout.bytes <= nic.sram_bytes


def test_a_design_that_there_is_not_is_one_line():
    with pytest.raises(ConfigError, match=r"^unknown design 'Base\+P'; valid designs: Base, Base\+O, "):
        rung("Base+P")
