"""The page of the API: its blocks are one program that runs, and it names every public call."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.references import ROOT

import lanikai

PAGE = (ROOT / "docs" / "api.md").read_text()


@pytest.mark.xdist_group("api")
def test_the_blocks_of_the_page_are_a_program(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "page.py").write_text("\n\n".join(blocks))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "holds" in done.stdout and "sent at" in done.stdout
    assert len(blocks) == 4 and (tmp_path / "verilog" / "lanikai_rate_control.v").exists()


def test_the_page_names_every_public_call():
    results = {"Run", "NetworkRun", "ClusterRun"}  # what calls return: their members are shown
    assert not [name for name in set(lanikai.__all__) - results if not re.search(rf"\b{name}\b", PAGE)]


@pytest.mark.parametrize("name", ["Run", "NetworkRun", "ClusterRun", "Host"])
def test_the_page_or_the_docstring_tells_every_member_of_what_calls_return(name):
    kind = getattr(lanikai, name)
    members = {key for key in vars(kind) if not key.startswith("_")}
    told = PAGE + (kind.__doc__ or "")
    assert not [member for member in members if not re.search(rf"\b{member}\b", told)]
