"""cosched in its quick size: which claims hold, and which do not, as `docs/coscheduling.md` says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lanikai.sim.experiments.framework import runner
from lanikai.sim.experiments.framework.backend import Simulator
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.run_folder import RunFolder
from lanikai.sim.experiments.registry import find

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coscheduling.md"


def documented(heading: str) -> set[str]:
    """The claims of the list below a heading of the page."""
    section = PAGE.read_text().partition(f"\n{heading}\n")[2].partition("\n## ")[0].partition("\n**")[0]
    return {" ".join(item.split()) for item in re.findall(r"^- ((?:.|\n  )*)$", section, re.MULTILINE)}


@pytest.mark.full
def test_the_claims_that_hold_are_those_of_the_page(tmp_path) -> None:
    experiment = find("cosched")
    parameters = parse(experiment, ())
    report = runner.execute(
        experiment,
        parameters,
        points=experiment.points(parameters, "quick"),
        size="quick",
        seed=1,
        folder=RunFolder(tmp_path / "run", experiment="cosched", size="quick", seed=1),
        backend=Simulator(),
        workers=1,
    )
    found = {
        verdict: {one.text for one in report.claims if one.holds is verdict} for verdict in (True, False)
    }
    correlations = {
        text for text in found[False] if text.startswith("workload ") and "rank correlation" in text
    }
    assert found[True] == documented("**These hold:**")
    assert found[False] - correlations == documented("**These do not hold:**")
    assert len(correlations) == 6
