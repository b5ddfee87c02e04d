"""The page of a run."""

from __future__ import annotations

from .compare import claims_table, compared, comparison_chart, comparison_table
from .curves import explorer, load_curves
from .folders import RunData
from .latency import distributions
from .made import made_by, when
from .measured import Measured, of_run
from .network_map import network_maps
from .over_time import over_time
from .page import Fold, Note, Page, Part, Picture, Section
from .setup_part import run_setup
from .tables import Tables
from .timeline import timelines
from .verdicts import run_verdict
from .words import number, row_table, same_and_varying

__all__ = ["run_page"]

PLOT = "plot.png"
MOST_PLOT_BYTES = 2_000_000
"""Largest picture that is taken into a page, bytes."""
PNG_MARK = b"\x89PNG\r\n"


def run_page(run: RunData) -> Page:
    """The page of a run: verdicts, curves, all results, the set-up."""
    measured = of_run(run)
    tables = Tables(run.path, measured, measured.rows)
    verdict = run_verdict(run)
    facts = run.facts
    seeds = max((len(outcome.repetitions) for outcome in run.outcomes), default=0) or 1
    return Page(
        title=run.name,
        lead=run.experiment.asks if run.experiment else "This version has no experiment of that name.",
        verdict=verdict.words,
        tone=verdict.tone,
        facts=[
            ("size", str(facts["size"])),
            ("points", str(len(run.points))),
            ("seed", str(facts["seed"]) if seeds == 1 else f"{seeds} from {facts['seed']} on"),
            ("cycles", f"{facts.get('cycles', 0):,}".replace(",", " ")),
            ("simulated in", f"{number(facts.get('wall_seconds'))} s"),
            ("written", when(run.written)),
        ],
        sections=[
            Section(name="published", title="Published values and claims", parts=_judged(run)),
            Section(
                name="curves",
                title="Curves",
                parts=[*load_curves(measured), *explorer(measured), *_plot(run)],
            ),
            Section(name="latency", title="Latency distributions", parts=distributions(tables)),
            Section(
                name="network",
                title="Links and buffers",
                parts=network_maps(tables),
            ),
            Section(name="time", title="Over time", parts=over_time(tables)),
            Section(name="timeline", title="The way of a message", parts=timelines(tables)),
            Section(name="results", title="All results", parts=_results(run, measured)),
            Section(name="setup", title="Set-up", parts=run_setup(run)),
        ],
        made=made_by(run.path),
    )


def _judged(run: RunData) -> list[Part]:
    """Published values beside ours, and the claims."""
    parts: list[Part] = []
    if run.experiment is not None:
        parts.append(Note(f"Source: {run.experiment.source}."))
    if values := compared(run):
        if chart := comparison_chart("Difference to the published values", values):
            parts.append(chart)
        parts.append(comparison_table("Published values beside ours", values))
    else:
        parts.append(Note("No published value is held against this run: its set-up has none."))
    if claims := claims_table("Claims", run.facts):
        parts.append(claims)
    else:
        parts.append(Note("The experiment makes no claim."))
    return parts


def _plot(run: RunData) -> list[Part]:
    """The experiment's own plot, as the run drew it."""
    file = run.path / PLOT
    if not file.is_file() or file.stat().st_size > MOST_PLOT_BYTES:
        return [Note(f"The run's own plot, {PLOT}, is not in its folder.", "unsure")]
    png = file.read_bytes()
    if not png.startswith(PNG_MARK):
        return [Note(f"{PLOT} is no picture.", "unsure")]
    picture = Picture(
        png, f"The plot of {run.name} as the run drew it. The tables of this page have its numbers."
    )
    return [Fold(name="plot", title="The run's own plot", badge="PNG", tone="", parts=[picture], open=True)]


def _results(run: RunData, measured: Measured) -> list[Part]:
    """A row for each flow of each point and seed."""
    rows = measured.rows
    if not rows:
        return [Note("The run has no point.", "unsure")]
    repeated = any(outcome.repetitions for outcome in run.outcomes)
    element = [measured.element] if measured.element else []
    varying = measured.of_points()
    same, moving = same_and_varying(rows, measured.results)
    names = ["point", *varying, *element, *measured.of_flows(), *(["seed"] if repeated else []), *moving]
    names += [name for name in same if name not in moving] if len(rows) == 1 else []
    if any(row.get("within") is not None for row in rows):
        names.append("within")
    parts: list[Part] = [
        row_table(
            "Results of each point" + (", seed by seed" if repeated else ""),
            rows,
            names,
            where="results.csv",
            note="Parameters that are the same everywhere are under Set-up.",
        )
    ]
    if same and len(rows) > 1:
        parts.append(
            row_table("Results that are the same in all rows", [same], list(same), where="results.csv")
        )
    return parts
