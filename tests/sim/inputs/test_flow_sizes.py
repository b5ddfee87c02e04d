"""Distributions of flow sizes: percent and fractions, samples and their mean, and what is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.inputs.errors import InputError
from lanikai.sim.inputs.flow_sizes import WEBSEARCH, read_flow_sizes
from support.sim.decorated import decorated

GOOD = "0 0\n1000 50\n1000.5 50\n20000 100"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_marks_of_editors_change_nothing_and_fractions_are_percent(data):
    with tempfile.TemporaryDirectory() as folder:
        plain, other, parts = (Path(folder) / name for name in "abc")
        plain.write_text(GOOD)
        other.write_bytes(data.draw(decorated(GOOD)))
        parts.write_text("0 0\n1000 0.5\n1000.5 0.5\n20000 1")
        assert read_flow_sizes(plain) == read_flow_sizes(other) == read_flow_sizes(parts)


def test_samples_have_the_mean(tmp_path):
    for path in (WEBSEARCH, tmp_path / "a"):
        if path is not WEBSEARCH:
            path.write_text(GOOD)
        sizes = read_flow_sizes(path)
        sample = [sizes.size((i + 0.5) / 100_000) for i in range(100_000)]
        assert sum(sample) / len(sample) == pytest.approx(sizes.mean_bytes, rel=1e-4)
        assert sizes.size(0) == 0 and sizes.size(1) == sizes.sizes_bytes[-1]
    assert sizes.size(0.25) == 500 and sizes.mean_bytes == pytest.approx(0.5 * 500 + 0.5 * 10500.25)


WRONG = {
    "": "flow sizes 'PATH' has no line: a line a point, bytes share",
    "1": "PATH:1: 1 fields in '1': 2: bytes share",
    "0 0\n1 2 3": "PATH:2: 3 fields in '1 2 3': 2: bytes share",
    "a 100": "PATH:1: bytes = 'a': a number of 0 or more",
    "nan 100": "PATH:1: bytes = 'nan': a number of 0 or more",
    "1 -1": "PATH:1: share = '-1': a number of 0 or more",
    "1 101": "PATH:1: share = '101': at most 100 percent",
    "1 0\n\n1 100": "PATH:3: bytes = '1': more than those before, 1",
    "1 50\n2 40\n3 100": "PATH:2: share = '40': no less than that before, 50",
    "1 50\n2 99 # almost": "PATH:2: the last share 99: 100, or 1 if shares are fractions",
    "0 1": "PATH:1: no flow has a byte: a size above 0",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_refused_in_a_line_that_names_its_line(text, tmp_path):
    path = tmp_path / "a.cdf"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_flow_sizes(path)
    assert str(caught.value) == WRONG[text].replace("PATH", str(path))
