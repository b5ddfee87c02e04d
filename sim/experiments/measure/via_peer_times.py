"""The times of peers (`via_peers.toml`), measured on full cards. The file is made of a run of via-scalability:

    lanikai run via-scalability --quick --set peers=card --json results.json
    python -m lanikai.sim.experiments.measure.via_peer_times results.json --out via_peers.toml

There two full cards run. Of each message it is known when it was at the second card, and when its answer began to go.
A peer is one server with a latency and an interval between answers. Of all such servers with the measured mean the file
has the one that fits the answers best, by the mean of squares.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lanikai.firmware.via.ladder import LADDER

from ...errors import UserError
from ...models.via_peer import PeerTimes

__all__ = ["FILE", "MODELLED", "STEPS", "fitted", "load_name", "main", "peer_file", "peer_times"]

FILE = Path(__file__).with_name("via_peers.toml")
HEAD = """# How long a peer takes to answer, by load: see sim/models/via_peer.py. Measured on two full cards by
# via-scalability. Made by `python -m lanikai.sim.experiments.measure.via_peer_times`; see there.
# A load: type, design, declared and active VIs, bytes of a message (i: immediate), messages at once.
"""
MODELLED = tuple(LADDER)[3:]
"""Designs whose peers the model stands for. Where words are polled, an answer waits for the peer's turn of polls. Two
numbers do not tell that: with 508 declared VIs Base's latency was 3 to 5 times too long beside the model."""
STEPS = 64
"""Intervals that are tried, from none to the mean time between two answers."""


def load_name(spec: Mapping[str, Any]) -> str:
    """The name of a load in the file. How the node's processes look for answers is none of its peers' business."""
    immediate = "i" if spec["immediate"] else ""
    return (
        f"{spec['type']} {spec['design']} {spec['declared_vis']} {spec['active_vis']} "
        f"{spec['message_bytes']}{immediate} {spec['messages_at_once']}"
    )


@cache
def _all() -> Mapping[str, Mapping[str, float]]:
    found: dict[str, Any] = tomllib.loads(FILE.read_text())
    return found


def peer_times(spec: Mapping[str, Any]) -> Mapping[str, float]:
    """`latency_us` and `interval_us` of a load's peer. Raises UserError for a load that was not measured."""
    name = load_name(spec)
    if name not in _all():
        raise UserError(
            f"peers=model: no peer was measured under the load {name!r}; peers=card runs a second full card"
        )
    return _all()[name]


def fitted(times: Sequence[tuple[int, int]]) -> PeerTimes:
    """The server that fits best to messages that came and whose answers went at these cycles.

    Raises ValueError for no messages.
    """
    if not times:
        raise ValueError("times of a peer: no message was answered")
    times = sorted(times)
    came = [one for one, _ in times]
    mean = sum(answer - come for come, answer in times) / len(times)
    answers = sorted(answer for _, answer in times)
    gap = (answers[-1] - answers[0]) / max(1, len(answers) - 1)
    best = (float("inf"), PeerTimes(latency_cycles=max(0, round(mean))))
    for step in range(STEPS + 1):
        interval = round(gap * step / STEPS)
        low, high = 0, max(0, round(mean))
        if _mean(came, low, interval) > mean:
            break
        while low < high:
            middle = (low + high + 1) // 2
            if _mean(came, middle, interval) <= mean:
                low = middle
            else:
                high = middle - 1
        begins = sorted(_begins(came, low, interval))
        error = sum((a - b) ** 2 for a, b in zip(begins, answers, strict=True))
        if error < best[0]:
            best = error, PeerTimes(latency_cycles=low, interval_cycles=interval)
    return best[1]


def _begins(came: Sequence[int], latency: int, interval: int) -> list[int]:
    found: list[int] = []
    last = came[0] - interval
    for one in came:
        last = max(one + latency, last + interval)
        found.append(last)
    return found


def _mean(came: Sequence[int], latency: int, interval: int) -> float:
    begins = _begins(came, latency, interval)
    return sum(begin - one for begin, one in zip(begins, came, strict=True)) / len(came)


def peer_file(results: Mapping[str, Any]) -> str:
    """The file, of `results.json` of the experiment with peers=card.

    Raises ValueError for results of the model: it may not be measured of itself.
    """
    lines: dict[str, str] = {}
    for point in results["points"]:
        its, found = point["parameters"], point["results"]
        if its["design"] not in MODELLED:
            continue
        if its["peers"] != "card":
            raise ValueError(
                "results of peers=model: the model's times are those of full cards, by peers=card"
            )
        for place, (latency, interval) in enumerate(
            zip(found["peer_latency_us"], found["peer_interval_us"], strict=True)
        ):
            load = {name: one[place] if isinstance(one, list) else one for name, one in its.items()}
            times = f"{{ latency_us = {latency:.2f}, interval_us = {interval:.2f} }}"
            lines.setdefault(load_name(load), times)
    return HEAD + "".join(f'"{name}" = {line}\n' for name, line in sorted(lines.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Make via_peers.toml of a run of via-scalability.")
    parser.add_argument("results", type=Path, help="results.json of the run")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    given = parser.parse_args(arguments)
    given.out.write_text(peer_file(json.loads(given.results.read_text())))


if __name__ == "__main__":
    main()
