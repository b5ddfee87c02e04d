"""The timeline of via-anatomy: a message has one number at both ends, in whatever order the ends see it."""

from __future__ import annotations

from lanikai.firmware.via.trace import Stage
from lanikai.sim.experiments.via.timeline import timeline_rows


def message(channel: int, *, receive: bool, at: int) -> dict[str, object]:
    stage = Stage.FOUND if receive else Stage.SEND
    return {"number": 0, "channel": channel, "receive": receive, "spans": [(int(stage), at, at + 5)]}


def test_what_is_received_has_the_number_of_what_was_sent():
    sent = [
        message(4, receive=False, at=10),
        message(4, receive=False, at=20),
        message(7, receive=False, at=30),
    ]
    came = [message(2, receive=True, at=40), message(3, receive=True, at=50), message(2, receive=True, at=60)]
    nothing = {"sender": [], "receiver": []}
    posts = {"sender": [(8, 9)], "receiver": []}
    series = {"messages": [*sent, *came], "steps": nothing, "posts": posts, "bursts": [(0, 1), (0, 100)]}
    rows = list(timeline_rows(series))
    by_lane = {
        lane: {row["message"]: row["begin_cycle"] for row in rows if row["lane"] == lane}
        for lane in ("link", "network receive", "bus, sender")
    }
    assert by_lane == {
        "link": {0: 10, 2: 20, 1: 30},
        "network receive": {0: 40, 2: 60, 1: 50},
        "bus, sender": {-1: 8},
    }
    assert list(timeline_rows(series | {"bursts": [(0, 1), (200, 300)]})) == []
