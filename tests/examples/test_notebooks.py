"""The notebooks: each is executed, with a look at what it finds. They are kept without outputs."""

from __future__ import annotations

import re

import nbformat
import pytest
from support.references import ROOT

FOLDER = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
LONG = {"load_curve": "it builds two networks"}


def execute(name: str, folder) -> str:
    """The text of all outputs."""
    from nbclient import NotebookClient

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(
        output.get("text", "") or str(output.get("data", {}).get("text/plain", "")) for output in outputs
    )


def load_curve(out: str) -> None:
    assert "fixed_priority" in out and "Figure" in out


def mpi_on_the_card(out: str) -> None:
    assert "ZeroDivisionError" in out and "return host.mpi.rank / (host.mpi.rank - 2)" in out
    assert "16384" in out and "Figure" in out


def life_of_a_packet(out: str) -> None:
    start, received, acknowledged = map(
        int, re.search(r"sent in cycle (\d+), received in (\d+), acknowledged in (\d+)", out).groups()
    )
    assert start < received < acknowledged + 2000
    for step in ("sdma_start", "send_packet", "send_ack"):
        assert step in out


CHECKS = {check.__name__: check for check in (load_curve, mpi_on_the_card, life_of_a_packet)}


@pytest.mark.xdist_group("api")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] if name in LONG else []) for name in NAMES]
)
def test_a_notebook_runs_and_shows_what_it_is_about(name, tmp_path):
    CHECKS[name](execute(name, tmp_path))


def test_there_are_three_without_outputs_and_each_is_named_on_the_page():
    assert len(NAMES) == 3 and sorted(CHECKS) == NAMES
    page = (ROOT / "docs" / "examples.md").read_text()
    for name in NAMES:
        assert f"- {name}: " in page
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)
