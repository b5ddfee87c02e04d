"""Every rule of every monitor has a history that breaks it, and every interface has its monitor."""

from lanikai.hdl.monitors import (
    MONITORS,
    Axi4LiteMonitor,
    Axi4Monitor,
    LinkMonitor,
    RegisterPortMonitor,
    StreamMonitor,
)

from .test_axi_monitors import AXI4, LITE
from .test_link_monitor import HISTORIES, RESTARTED
from .test_stream_monitors import PORTS, STREAMS

PLAYED = {
    StreamMonitor: STREAMS,
    RegisterPortMonitor: PORTS,
    LinkMonitor: HISTORIES | RESTARTED,
    Axi4Monitor: AXI4,
    Axi4LiteMonitor: LITE,
}


def test_every_rule_is_broken_by_a_history_and_kept_by_one():
    assert set(PLAYED) == set(MONITORS.values())
    for monitor, histories in PLAYED.items():
        assert {rule for _, expected in histories.values() for _, rule in expected} == set(monitor.rules)
        assert any(not expected for _, expected in histories.values())
