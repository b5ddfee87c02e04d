"""The reproduction matrix: every published table, the latest run of its experiment beside it, and the reasons."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..experiments.registry import EXPERIMENTS
from ..published import CONSTANTS, tables
from .compare import claims_table, compared, comparison_chart, comparison_table
from .folders import RunData
from .made import when
from .page import Cell, Column, Command, Fold, Note, Part, Table, Tone
from .setup_part import value_table
from .verdicts import Verdict, run_verdict
from .words import cell, label, number

__all__ = ["Entry", "Reason", "deviations", "entries", "matrix", "reasons"]

REASONS = Path(__file__).with_name("reasons.toml")


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a result is not as published, as a page of the project says it.

    - `text`: the reason in a sentence or two.
    - `page`: the page that has it in full.
    - `words`: words that stand there, by which a test finds the place.
    """

    text: str
    page: str
    words: str


@dataclass(frozen=True)
class Entry:
    """A published table: its `name`, what it holds, the latest `run` of its experiment (None: there is none)."""

    name: str
    published: Mapping[str, Any]
    run: RunData | None

    @property
    def built(self) -> bool:
        """Whether the experiment is built."""
        return self.name in EXPERIMENTS

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the run, if there is one."""
        return run_verdict(self.run) if self.run else None

    @property
    def state(self) -> tuple[str, Tone]:
        """The verdict in a word or two, and its tone."""
        if not self.built:
            return "not built", "unsure"
        if self.verdict is None:
            return "no run", "unsure"
        return self.verdict.word, self.verdict.tone

    @property
    def why(self) -> str:
        """A sentence for the matrix: why there is no verdict, or what is out."""
        verdict = self.verdict
        if not self.built:
            return "The experiment is not built yet."
        if verdict is None:
            return f"No run of it is in these folders: lanikai run {self.name}"
        parts = []
        if verdict.out or verdict.broken:
            known = reasons().get(self.name, ())
            parts.append(known[0].text if known else "No page says why yet.")
        elif verdict.tone == "unsure":
            parts.append("The set-up of the run is not the published one, so nothing is held against it.")
        return " ".join(parts)


@cache
def reasons() -> Mapping[str, Sequence[Reason]]:
    """The reasons by experiment."""
    with REASONS.open("rb") as file:
        found = tomllib.load(file)
    return {name: [Reason(**one) for one in listed] for name, listed in found.items()}


def latest(runs: Sequence[RunData]) -> dict[str, RunData]:
    """The run of each experiment that was written last. A full one goes before a quick one."""
    found: dict[str, RunData] = {}
    for run in sorted(runs, key=lambda one: (one.facts["size"] == "full", one.written, str(one.path))):
        found[run.name] = run
    return found


def entries(runs: Sequence[RunData]) -> list[Entry]:
    """Every published table but the constants of set-ups, in the order of the published numbers."""
    last = latest(runs)
    return [Entry(name, held, last.get(name)) for name, held in tables().items() if name not in CONSTANTS]


def matrix(found: Sequence[Entry]) -> Table:
    """A row for each published table: verdict, values, claims, run, reason."""
    return Table(
        caption="Every published table, and the latest run of its experiment",
        columns=[
            Column("table"),
            Column("verdict"),
            Column("values within", True),
            Column("claims that hold", True),
            Column("size"),
            Column("run"),
            Column("why"),
            Column("source"),
        ],
        rows=[list(_row(entry)) for entry in found],
        note="A full run goes before a quick one, else the latest counts.",
    )


def _row(entry: Entry) -> Iterator[Cell]:
    word, tone = entry.state
    verdict, run = entry.verdict, entry.run
    yield Cell(entry.name, entry.name, link=address(entry.name))
    yield Cell(word, word, tone)
    for good, of in (
        ((verdict.within, verdict.values), (verdict.held, verdict.claims)) if verdict else ((0, 0),) * 2
    ):
        yield Cell(f"{good} of {of}", good / of) if of else Cell("-")
    yield cell(run.facts["size"] if run else None)
    yield Cell(when(run.written), run.written) if run else Cell("-")
    yield Cell(entry.why, entry.why)
    yield Cell(str(entry.published["source"]), str(entry.published["source"]))


def address(name: str) -> str:
    """The address in the page of a published table."""
    return f"table-{name}"


def deviations(found: Sequence[Entry]) -> list[Part]:
    """Each published table by itself: ours beside it, claims, reasons, the table as it was published."""
    return [
        Fold(
            name=address(entry.name),
            title=entry.name,
            badge=entry.state[0],
            tone=entry.state[1],
            parts=list(_parts(entry)),
            open=entry.state[1] == "bad",
        )
        for entry in found
    ]


def _parts(entry: Entry) -> Iterator[Part]:
    yield Note(f"Source: {entry.published['source']}.")
    if entry.built:
        yield Note(EXPERIMENTS[entry.name].asks)
    if entry.run is None:
        yield Note(entry.why, "unsure")
        if entry.built:
            yield Command(f"lanikai run {entry.name}", f"The command that runs {entry.name}")
    else:
        yield from _of_run(entry, entry.run)
    yield value_table(f"{entry.name} as published", dict(_flat(entry.published)), ("name", "value"))


def _of_run(entry: Entry, run: RunData) -> Iterator[Part]:
    verdict = run_verdict(run)
    yield Note(f"{verdict.words}. Run of {when(run.written)}, size {run.facts['size']}, in {run.path}.")
    if verdict.out or verdict.broken:
        known = reasons().get(entry.name, ())
        for reason in known:
            yield Note(f"Why: {reason.text} ({reason.page})")
        if not known:
            yield Note("No page says yet why it is out.", "unsure")
    if values := compared(run):
        if chart := comparison_chart(f"{entry.name}: difference to the published values", values):
            yield chart
        yield comparison_table(f"{entry.name}: published values beside ours", values)
    else:
        yield Note("No value of this table stands beside a result of the run; its claims are judged, below.")
    if claims := claims_table(f"{entry.name}: claims", run.facts):
        yield claims
    if run.facts.get("command"):
        yield Command(str(run.facts["command"]), f"The command that repeats this run of {entry.name}")


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a published table, one row each."""
    for key, value in values.items():
        if key == "source":
            continue
        name = f"{before}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}, ")
        elif isinstance(value, list) and len(value) > 12:
            yield label(name), ", ".join(number(one) for one in value)
        else:
            yield label(name), value
