"""The table of fitted numbers: as the code has them, and none forgotten."""

from __future__ import annotations

from pathlib import Path

from lanikai.firmware.costs import GM_COSTS
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.fitted import FITTED, page

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_the_documentation_has_every_number_as_the_code_has_it():
    assert page() in (ROOT / "docs/results.md").read_text()
    values = {fit.name: fit.value() for fit in FITTED}
    assert values["sdma_packet"] == GM_COSTS.cycles("sdma_packet") and values["SHARED_MB_PER_S"] == 78.0


def test_a_fitted_number_stands_where_it_says_and_spends_an_experiment():
    for fit in FITTED:
        text = (ROOT / fit.where).read_text()
        assert all(name in text for name in fit.name.split(" + ")), fit.name
        assert any(f"`{name}`" in fit.spent for name in EXPERIMENTS), fit.name
