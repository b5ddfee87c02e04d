"""The page of everything: the reproduction matrix, then every run and sweep."""

from __future__ import annotations

from collections.abc import Sequence

from ..published import CONSTANTS, tables
from .folders import Collection, RunData, SweepData
from .made import made_by, when
from .page import Cell, Chart, Column, Command, Note, Page, Part, Section, Table, Tone
from .reproduction import Entry, deviations, entries, matrix
from .setup_part import sweep_command
from .verdicts import run_verdict
from .words import cell

__all__ = ["everything_page"]


def everything_page(found: Collection) -> Page:
    """The page of several runs and sweeps, with every published table."""
    listed = entries(found.runs)
    states = [entry.state[1] for entry in listed]
    ran = [entry for entry in listed if entry.run is not None]
    good, bad = states.count("good"), states.count("bad")
    tone: Tone = "bad" if bad else "good" if good else "unsure"
    verdicts = [entry.verdict for entry in ran if entry.verdict]
    place = ", ".join(str(path) for path in found.paths)
    return Page(
        title="Reproduction",
        lead="Every published table of the source documents, the latest run of its experiment beside it, and why what "
        "is out is out.",
        verdict=f"{len(ran)} of {len(listed)} tables were run: {good} as published, {bad} with something out",
        tone=tone,
        facts=[
            ("published tables", str(len(listed))),
            ("tables with a run", str(len(ran))),
            ("values within", _of(sum(one.within for one in verdicts), sum(one.values for one in verdicts))),
            ("claims that hold", _of(sum(one.held for one in verdicts), sum(one.claims for one in verdicts))),
            ("runs", str(len(found.runs))),
            ("sweeps", str(len(found.sweeps))),
        ],
        sections=[
            Section(name="matrix", title="Matrix", parts=_matrix(listed)),
            Section(name="tables", title="Table by table", parts=deviations(listed)),
            Section(name="runs", title="All runs and sweeps", parts=_runs(found)),
            Section(name="setup", title="Set-up", parts=_setup(found)),
        ],
        made=made_by(place),
    )


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"


def _matrix(listed: Sequence[Entry]) -> list[Part]:
    states = {"as published": "good", "something is out": "bad", "no run, or not judged": "unsure"}
    colours = {"good": "@2", "bad": "@4", "unsure": "@7"}
    counts = {word: sum(entry.state[1] == tone for entry in listed) for word, tone in states.items()}
    chart = Chart(
        title="Verdicts of the published tables",
        about="How many tables are as published, how many have a value or a claim that is out, and how many have no "
        "verdict.",
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "name": word,
                "y": [""],
                "x": [count],
                "text": [str(count)],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "insidetextfont": {"color": "@page", "size": 15},
                "marker": {"color": colours[states[word]]},
                "hovertemplate": f"{count} {word}<extra></extra>",
            }
            for word, count in counts.items()
        ],
        layout={"barmode": "stack", "xaxis": {"title": {"text": "published tables"}}, "showlegend": True,
                "yaxis": {"showticklabels": False},
                "legend": {"orientation": "h", "y": -0.6, "yanchor": "top", "x": 0, "traceorder": "normal"}},
        height=260,
    )  # fmt: skip
    constants = ", ".join(name for name in tables() if name in CONSTANTS)
    return [
        chart,
        matrix(listed),
        Note(f"The tables {constants} hold the constants of set-ups, and have no experiment of their own."),
    ]


def _runs(found: Collection) -> list[Part]:
    parts: list[Part] = [
        Table(
            caption="Runs and sweeps",
            columns=[
                Column("folder"),
                Column("what"),
                Column("experiment"),
                Column("size"),
                Column("verdict"),
                Column("written"),
            ],
            rows=[*map(_run_row, found.runs), *map(_sweep_row, found.sweeps)],
        )
    ]
    parts += [Note(f"Not read: {text}", "unsure") for text in found.broken]
    return parts


def _run_row(run: RunData) -> list[Cell]:
    verdict = run_verdict(run)
    return [
        cell(str(run.path)),
        cell("run"),
        cell(run.name),
        cell(run.facts["size"]),
        Cell(verdict.words, verdict.words, verdict.tone if verdict.tone == "bad" else ""),
        Cell(when(run.written), run.written),
    ]


def _sweep_row(sweep: SweepData) -> list[Cell]:
    failed = len(sweep.failures)
    words = f"{len(sweep.rows)} rows" + (f", {failed} points without a result" if failed else "")
    return [
        cell(str(sweep.path)),
        cell("sweep"),
        cell(sweep.name),
        cell(sweep.facts["size"]),
        Cell(words, words, "bad" if failed else ""),
        Cell(when(sweep.written), sweep.written),
    ]


def _setup(found: Collection) -> list[Part]:
    """The versions of all, and the commands of runs and sweeps."""
    versions: dict[tuple[str, str], int] = {}
    for facts in [*(run.facts for run in found.runs), *(sweep.facts for sweep in found.sweeps)]:
        for name, number in (facts.get("versions") or {}).items():
            key = str(name), str(number)
            versions[key] = versions.get(key, 0) + 1
    commands = [str(run.facts["command"]) for run in found.runs if run.facts.get("command")]
    commands += [sweep_command(sweep) for sweep in found.sweeps]
    parts: list[Part] = [
        Table(
            caption="Versions",
            columns=[Column("program"), Column("version"), Column("runs and sweeps", True)],
            rows=[[cell(name), cell(number), cell(count)] for (name, number), count in versions.items()],
        )
    ]
    if commands:
        parts.append(Command("\n".join(dict.fromkeys(commands)), "The commands that repeat all this"))
    return parts
