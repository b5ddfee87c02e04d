"""Make `capacity.toml` of a run of the experiment `via-admission`:

    python -m lanikai.sim.host.via.capacity results.json --out capacity.toml

The time of a message is a line over its bytes: the least one, by the mean of squares, moved up so that no measured time
is above it. So admission promises too little rather than too much.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .admission import MessageTime

__all__ = ["capacity_file", "line", "main"]

HEAD = """# The time of a message on a card of chapter 5, by design and direction: see admission.py.
# Measured by the experiment via-admission. Made by `python -m lanikai.sim.host.via.capacity`; see there.
"""


def line(times_us: Mapping[int, float]) -> MessageTime:
    """The line over measured times by bytes. Raises ValueError for less than two sizes."""
    if len(times_us) < 2:
        raise ValueError(f"{len(times_us)} sizes of messages: at least 2")
    sizes, times = list(times_us), [1e6 * time for time in times_us.values()]
    mean_size, mean_time = sum(sizes) / len(sizes), sum(times) / len(times)
    slope = sum((x - mean_size) * (y - mean_time) for x, y in zip(sizes, times, strict=True)) / sum(
        (x - mean_size) ** 2 for x in sizes
    )
    byte_ps = max(0, round(slope))
    fixed_ps = max(y - byte_ps * x for x, y in zip(sizes, times, strict=True))
    return MessageTime(fixed_ns=max(0, -int(-fixed_ps // 1000)), byte_ps=byte_ps)


def capacity_file(results: Mapping[str, Any]) -> str:
    """The file, of `results.json` of the experiment."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for point in results["points"]:
        its = point["parameters"]
        if its["setup"] in ("send", "receive"):
            times = found.setdefault(its["design"], {}).setdefault(its["setup"], {})
            times[its["message_bytes"]] = point["results"]["message_us"]
    lines = [HEAD]
    for number, (design, ways) in enumerate(found.items()):
        lines.append(f"[{design}]\n" if not number else f"\n[{design}]\n")
        for way, times in ways.items():
            made = line(times)
            lines.append(f"{way} = {{ fixed_ns = {made.fixed_ns}, byte_ps = {made.byte_ps} }}\n")
    return "".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Make capacity.toml of a run of via-admission.")
    parser.add_argument("results", type=Path, help="results.json of the run")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    given = parser.parse_args(arguments)
    given.out.write_text(capacity_file(json.loads(given.results.read_text())))


if __name__ == "__main__":
    main()
