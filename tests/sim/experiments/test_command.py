"""The command that a run's results name: given to the program, it is the same run."""

from __future__ import annotations

import shlex

import pytest
from lanikai.sim.experiments.framework.command import run_command
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find

CASES = [
    ("share-senders", []),
    ("share-senders", ["idt_over_T=[[2,3,6]]"]),
    ("network-load", ["network=router4", "vls=4", "loads=[0.2,0.5]", "class_shares=[0.25,0.75]", "pipelined=true",
                      "allocator=separable"]),
    ("wrr-shares", ["link_rate=1/2"]),
    ("transfer", ["file=my file"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_the_command_sets_the_same_parameters(tmp_path, monkeypatch, name, settings):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my file").write_bytes(b"bytes")
    experiment = find(name)
    parameters = parse(experiment, settings)
    words = shlex.split(run_command(name, parameters, size="full", seed=3, seeds=2))
    assert words[:4] == ["lanikai", "run", name, "--full"]
    assert words[-4:] == ["--seed", "3", "--seeds", "2"]
    given = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
    assert parse(experiment, given) == parameters
    assert {one.partition("=")[0] for one in given} == {one.partition("=")[0] for one in settings}
