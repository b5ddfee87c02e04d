"""The page on admission says what the code does: its defaults, and the mechanisms whose loss is noticed."""

import re

from lanikai.sim.admission.config import AdmissionConfig
from support.admission.mutants import MUTANTS
from support.references import ROOT

PAGE = (ROOT / "docs" / "admission.md").read_text()


def test_defaults_on_the_page_are_those_of_the_code():
    config = AdmissionConfig()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|$", PAGE, re.M)
    assert len(rows) == 5
    assert {name: int(value) for name, value in rows} == {name: getattr(config, name) for name, _ in rows}


def test_every_mutant_is_on_the_page_and_no_other():
    text = PAGE.partition("when it is broken:\n")[2].partition("\n## ")[0]
    assert re.findall(r"^- (.*)$", text, re.M) == [m.__name__.replace("_", " ") for m in MUTANTS]
