"""The reproduction matrix: every published table is in it, and a reason that it gives stands on the page it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.published import CONSTANTS, tables
from lanikai.sim.report.folders import read_folders
from lanikai.sim.report.report import make_report
from lanikai.sim.report.reproduction import entries, matrix, reasons
from support.sim.report_folders import run_facts, shares, write_run

ROOT = Path(__file__).resolve().parents[3]


def words(text: str) -> str:
    return " ".join(re.sub(r"[*]", "", text).split())


@pytest.mark.parametrize("name", reasons())
def test_a_reason_stands_on_the_page_that_it_names(name):
    assert name in EXPERIMENTS and name in tables()
    for reason in reasons()[name]:
        assert words(reason.words) in words((ROOT / reason.page).read_text()), reason.words
        assert reason.text.endswith(".")


def test_every_published_table_is_in_the_matrix(tmp_path):
    run = write_run(tmp_path / "run", shares((30.0, 41.0)))
    found = entries([read_folders([run])])
    assert [entry.name for entry in found] == [name for name in tables() if name not in CONSTANTS]
    states = {entry.name: entry.state for entry in found}
    assert states["share-senders"] == ("OUT", "bad")
    assert states["share-receiver"] == ("no run", "unsure")
    for name, state in states.items():
        assert (state[0] == "not built") == (name not in EXPERIMENTS)
    rows = matrix(found).rows
    assert [row[0].text for row in rows] == list(states)
    (mine,) = [row for row in rows if row[0].text == "share-senders"]
    assert [one.text for one in mine][1:5] == ["OUT", "1 of 2", "1 of 1", "quick"]
    html = make_report([tmp_path])
    for name in states:
        assert html.count(f'id="table-{name}"') == html.count(f'href="#table-{name}"') == 1


def test_why_a_table_has_no_good_verdict_is_said(tmp_path):
    broken = run_facts("am-bandwidth", [], claims=[{"text": "it holds", "holds": False}])
    unjudged = run_facts("congestion", [], claims=[])
    no_page = shares((30.0, 41.0))
    runs = [
        read_folders([write_run(tmp_path / str(n), facts)])
        for n, facts in enumerate((broken, unjudged, no_page))
    ]
    why = {entry.name: entry.why for entry in entries(runs)}
    assert why["am-bandwidth"] == reasons()["am-bandwidth"][0].text
    assert "not the published one" in why["congestion"]
    assert why["share-senders"] == "No page says why yet."
    assert why["via-cbr"].endswith("lanikai run via-cbr")
    assert why["substrates"] == "The experiment is not built yet."
