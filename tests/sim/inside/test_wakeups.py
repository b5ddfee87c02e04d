"""A GM message wakes a host at most three times on each side; the coroutines that wake are those that `docs/speed.md`
lists."""

import re
from collections import Counter
from pathlib import Path

import pytest
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset

pytestmark = pytest.mark.xdist_group("gm-cluster")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "speed.md"
SIDES = ("sender", "receiver")


def count(tmp_path, **spec):
    """Wake-ups by coroutine, of messages from node 0 to node 1."""
    config = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20)
    job = config.job("support.sim.wakeup_points:messages", spec)
    return run(config.build(), *job, out_dir=tmp_path, seed=1).value


def hosts(wakeups):
    """Wake-ups of the sender's and the receiver's host: library and program."""
    return [
        wakeups["gm[0].port2"] + wakeups["program sends"],
        wakeups["gm[1].port2"] + wakeups["program receives"],
    ]


def documented():
    """The page's table: {(side, coroutine): (wake-ups, of which side's node)}."""
    rows = re.findall(r"^\| (host|card), (\w+) \| (\d+|—) \| (\d+|—) \|", PAGE.read_text(), re.MULTILINE)
    return {
        (side, place, name): int(numbers[side])
        for place, name, *numbers in rows
        for side in (0, 1)
        if numbers[side] != "—"
    }


def test_one_message(tmp_path):
    """A message of 1 KB wakes each side's host three times, and the cards as often as the page says."""
    wakeups = count(tmp_path, messages=1, bytes=1024, gap_cycles=4000)
    # The program sleeps once more, for the gap.
    wakeups["program sends"] -= 1
    assert hosts(wakeups) == [3, 3]
    found = {}
    for name, number in wakeups.items():
        if card := re.fullmatch(r"gm\[([01])\]\.(\w+)", name):
            place = "host" if card[2] == "port2" else "card"
            found[int(card[1]), place, "library" if place == "host" else card[2]] = number
    found[0, "host", "program"] = wakeups["program sends"]
    found[1, "host", "program"] = wakeups["program receives"]
    assert {key: number for key, number in found.items() if number} == documented()
    cards = Counter[int]()
    for (side, place, _), number in found.items():
        cards[side] += number if place == "card" else 0
    assert cards[0] <= 25 and cards[1] <= 20


def test_a_stream(tmp_path):
    """The same holds for messages that follow one another as fast as they can, of one packet and of several."""
    for length in (1024, 12000):
        wakeups = count(tmp_path, messages=30, bytes=length, gap_cycles=0)
        assert all(number <= 3 * 30 for number in hosts(wakeups))
        assert all(number >= 2 * 30 for number in hosts(wakeups)[1:])
