"""The page of a sweep."""

from __future__ import annotations

from .curves import explorer, load_curves
from .folders import SweepData
from .latency import distributions
from .made import made_by, when
from .measured import Measured, of_sweep
from .network_map import network_maps
from .over_time import over_time
from .page import Note, Page, Part, Section
from .setup_part import sweep_setup
from .tables import Tables
from .words import number, row_table, same_and_varying

__all__ = ["sweep_page"]


def sweep_page(sweep: SweepData) -> Page:
    """The page of a sweep: curves over what varies, claims, failures, all rows, the set-up."""
    measured = of_sweep(sweep)
    tables = Tables(sweep.path, measured, sweep.rows)
    facts = sweep.facts
    rows = measured.rows
    points = len({(row.get("point"), row.get("seed"), str(_settings(measured, row))) for row in rows})
    seeds = len({row["set_seed"] for row in rows if "set_seed" in row}) or 1
    broken = sum(claim.get("holds") is False for claim in sweep.claims)
    failed = len(sweep.failures)
    varying = measured.of_points()
    words = f"{points} points have a result" if not failed else f"{failed} points have no result"
    return Page(
        title=f"Sweep of {sweep.name}",
        lead=sweep.experiment.asks if sweep.experiment else "This version has no experiment of that name.",
        verdict=words,
        tone="bad" if failed else "good",
        facts=[
            ("points", str(points)),
            ("rows", str(len(rows))),
            ("seeds", str(seeds)),
            ("size", str(facts["size"])),
            ("claims that do not hold", str(broken)),
            ("written", when(sweep.written)),
        ],
        sections=[
            Section(name="curves", title="Curves", parts=[*load_curves(measured), *explorer(measured)]),
            *(
                [Section(name="failures", title="Points without a result", parts=[_failures(sweep)])]
                if failed
                else []
            ),
            Section(name="latency", title="Latency distributions", parts=distributions(tables)),
            Section(name="network", title="Links and buffers", parts=network_maps(tables)),
            Section(name="time", title="Over time", parts=over_time(tables)),
            Section(name="claims", title="Claims", parts=_claims(sweep)),
            Section(name="results", title="All results", parts=_results(measured, varying)),
            Section(
                name="setup",
                title="Set-up",
                parts=sweep_setup(sweep, same_and_varying(rows, measured.parameters)[0], varying),
            ),
        ],
        made=made_by(sweep.path),
    )


def _settings(measured: Measured, row: object) -> list[object]:
    """The values that tell the combination of a row from others, but for its flow."""
    assert isinstance(row, dict)
    return [row.get(name) for name in (*measured.parameters, "set_seed") if name != measured.element]


def _failures(sweep: SweepData) -> Part:
    return row_table("Points without a result", sweep.failures, list(sweep.failures[0]), where="failures.csv")


def _claims(sweep: SweepData) -> list[Part]:
    """How often each claim holds; a sweep leaves the set-up that claims are meant for."""
    counts: dict[str, dict[str, int]] = {}
    for claim in sweep.claims:
        one = counts.setdefault(str(claim.get("claim")), {"holds": 0, "does not hold": 0, "not judged": 0})
        holds = claim.get("holds")
        one["not judged" if holds is None else "holds" if holds in (True, "true") else "does not hold"] += 1
    if not counts:
        return [Note("No combination of the sweep is whole, or the experiment makes no claim.")]
    rows = [{"claim": text} | one for text, one in counts.items()]
    return [
        Note(
            "Claims are meant for the published set-up, which a sweep leaves: they are reported and count for nothing."
        ),
        row_table("In how many combinations each claim holds", rows, list(rows[0]), where="claims.csv"),
    ]


def _results(measured: Measured, varying: list[str]) -> list[Part]:
    rows = measured.rows
    seed = ["set_seed"] if len({row.get("set_seed") for row in rows}) > 1 else []
    element = [measured.element] if measured.element else []
    same, moving = same_and_varying(rows, measured.results)
    names = [*varying, *seed, *element, *measured.of_flows(), *moving]
    parts: list[Part] = [row_table("Results of each point", rows, names or list(same), where="table.csv")]
    if same and names:
        text = ", ".join(f"{name} = {number(value)}" for name, value in same.items())
        parts.append(
            Note(
                f"The same in all rows: {text}."
                if len(text) < 600
                else f"The same in all rows: {len(same)} results."
            )
        )
    return parts
