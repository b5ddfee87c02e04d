"""The experiments on MPI: their points, their results from measurements, and claims that fail when broken."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome, Point
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.results import write_csv
from lanikai.sim.experiments.measure.gm_flows import ideal_mb_per_s
from lanikai.sim.experiments.mpi.replay import CASES
from lanikai.sim.experiments.registry import find
from matplotlib.figure import Figure

CLOCK_HZ = 33_000_000
NAMES = ("mpi-idt", "mpi-share", "mpi-replay")
PAYLOAD = 65536 / (18 * 4096)
"""Payload of the 18 packets that a message of 64 KB takes, as a part of full ones."""


def flows(*mb_per_s: float) -> dict[str, Any]:
    """The measurement of flows with these bandwidths."""
    return {
        "payload_bytes": [round(one * 1_000_000) for one in mb_per_s],
        "flow_cycles": [CLOCK_HZ] * len(mb_per_s),
        "window_cycles": CLOCK_HZ,
        "clock_hz": CLOCK_HZ,
    }


def judge(
    name: str, answer: Callable[[Point], dict[str, Any]], *settings: str, size: str = "quick"
) -> list[bool]:
    """Whether each claim holds, with the measurement `answer(point)`. The plot is drawn, too."""
    experiment = find(name)
    parameters = parse(experiment, settings)
    outcomes = [
        Outcome(
            point=point,
            results=experiment.results(parameters, point, answer(point)),
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, size)
    ]
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert figure.axes
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


@pytest.mark.parametrize("name", NAMES)
def test_points_are_told_apart_and_full_is_the_longer_size(name) -> None:
    experiment = find(name)
    parameters = parse(experiment, [])
    quick, full = (experiment.points(parameters, size) for size in ("quick", "full"))
    for points in (quick, full):
        assert len({point.label for point in points}) == len(points)
    assert len(full) >= len(quick) and full[0].spec != quick[0].spec


def curve(**changes: float) -> Callable[[Point], dict[str, Any]]:
    """Figure 5.9, with other bandwidths at points such as `MPI_140`."""

    def answer(point: Point) -> dict[str, Any]:
        layer, idt = point.parameters["layer"], point.parameters["idt_ticks"]
        right = (
            ideal_mb_per_s(max(96, idt))
            if layer == "GM"
            else min(53.0, ideal_mb_per_s(max(idt, 1)) * PAYLOAD)
        )
        return flows(changes.get(f"{layer}_{idt}", right))

    return answer


@pytest.mark.parametrize("size", ["quick", "full"])
def test_mpi_idt_holds_what_the_figure_shows(size) -> None:
    assert judge("mpi-idt", curve(), size=size) == [True] * 4


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"MPI_250": ideal_mb_per_s(250) * PAYLOAD * 0.96}, [0]),
        ({"MPI_140": 49.0}, [0]),
        ({"MPI_0": 50.4}, [1]),
        ({"MPI_120": 50.5}, [1]),
        ({f"MPI_{idt}": 56.0 for idt in (0, 96, 120)}, [2]),
        ({f"MPI_{idt}": 44.0 for idt in (0, 96, 120)}, [2]),
        ({"GM_96": 68.0, "GM_0": 85.33}, [3]),
        ({"GM_0": 80.0, "GM_96": 80.0}, [3]),
    ],
)
def test_mpi_idt_fails_where_it_is_not_so(changes, broken) -> None:
    assert judge("mpi-idt", curve(**changes)) == [claim not in broken for claim in range(4)]


def test_mpi_idt_judges_what_it_has() -> None:
    assert judge("mpi-idt", curve(), "idt_ticks=[150, 200]") == [True, None, None, None]
    assert judge("mpi-idt", curve(), "idt_ticks=[0, 140]") == [True, True, True, None]
    # The knee is that of messages of 64 KB.
    assert judge("mpi-idt", curve(MPI_140=1.0), "message_bytes=262144") == [None] * 4


def share(first: float = 1.0, second: float = 1.0) -> Callable[[Point], dict[str, Any]]:
    """Bandwidths by the IDTs, times these."""

    def answer(point: Point) -> dict[str, Any]:
        one, other = (ideal_mb_per_s(idt) * PAYLOAD for idt in point.parameters["idt_ticks"])
        return flows(one * first, other * second)

    return answer


def test_mpi_share_holds_flows_against_their_idts() -> None:
    assert judge("mpi-share", share(), size="full") == [True, True]
    assert judge("mpi-share", share(0.995, 0.995)) == [True, True]
    assert judge("mpi-share", share(0.985, 0.985)) == [True, False]
    assert judge("mpi-share", share(1.0, 1.03)) == [False, False]
    # IDTs below 140 are not the thesis' business, nor is it what two flows get that the card cannot dispatch.
    assert judge("mpi-share", share(0.5), "idt_ticks=[[100, 300]]") == [None, None]
    assert judge("mpi-share", share(0.8, 0.8), "idt_ticks=[[140, 140]]") == [True, None]
    with pytest.raises(UserError, match=r"idt_ticks\[1\] has 3 IDTs: a setting is two flows"):
        parse(find("mpi-share"), ["idt_ticks=[[140, 150], [140, 150, 160]]"])


def times(**changes: float) -> Callable[[Point], dict[str, Any]]:
    """Cycles of a program that a competing flow slows by a fifth."""
    cycles = {"alone": 1000, "reserved": 1020, "sixteenth": 1300, "competing": 1200, "member": 1200}
    cycles |= {"throttled": 1030, "both": 1030} | changes
    names = {"competing, reserved": "both", "a sixteenth reserved": "sixteenth"}

    def answer(point: Point) -> dict[str, Any]:
        case = names.get(point.label, point.label.removeprefix("competing, "))
        return {
            "replay_cycles": cycles[case],
            "call_cycles": [500] * 4,
            "messages": cycles.get(f"messages_{case}", 30),
            "competing_bytes": 1000 * point.parameters["competing"],
            "clock_hz": CLOCK_HZ,
        }

    return answer


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, []),
        ({"competing": 1099}, [0]),
        ({"both": 1051}, [1]),
        ({"member": 1099}, [2]),
        ({"throttled": 1051}, [3]),
        ({"sixteenth": 1099}, [4]),
        ({"reserved": 1051}, [5]),
        ({"messages_reserved": 29}, [6]),
    ],
)
def test_mpi_replay_holds_the_times_against_each_other(changes, broken) -> None:
    assert judge("mpi-replay", times(**changes)) == [claim not in broken for claim in range(7)]


def test_mpi_replay_refuses_flows_that_are_not_there() -> None:
    for settings, message in (
        (["competing=[1, 1]"], "competing = [1, 1]: two different nodes of 0 to 3"),
        (["competing=[0, 4]"], "competing = [0, 4]: two different nodes of 0 to 3"),
        (
            ["competing=[1, 2]"],
            "reserve: the program sends nothing from rank to rank [1, 2], but [0, 2], [1, 0], [1, 3], [2, 0], "
            "[3, 1], [3, 2]",
        ),
        (
            ["reserve_mb_per_s=60"],
            "reserve_mb_per_s = 60: at most 53.6, which is what a rank can do with the messages from 3 to 2",
        ),
        (["reserve=[[3, 2], [0, 9]]"], "reserve: the program sends nothing from rank to rank [0, 9], but "),
    ):
        with pytest.raises(UserError) as caught:
            parse(find("mpi-replay"), settings)
        assert message in str(caught.value)
    points = find("mpi-replay").points(parse(find("mpi-replay"), ["competing=[3, 1]"]), "quick")
    reserved = [[[3, 1]] if label.endswith("reserved") else [] for label in CASES]
    assert [point.spec["reserve"] for point in points] == reserved
    assert [point.spec["competing"] for point in points] == [None] * 3 + [[3, 1]] * 4
    assert [point.spec["reserve_mb_per_s"] for point in points] == [0, 52, 3.25, 0, 0, 0, 52]


def test_mpi_replay_refuses_reservations_that_a_node_cannot_keep_together() -> None:
    """They are refused before anything is built: 44 MB/s of 36000 bytes are 50.06 of full packets, twice from one
    node."""
    experiment = find("mpi-replay")
    settings = ["reserve=[[3, 1], [3, 2]]", "reserve_mb_per_s=44"]
    with pytest.raises(UserError) as caught:
        experiment.points(parse(experiment, settings), "quick")
    assert str(caught.value) == (
        "reserve_mb_per_s = 44 from rank 3 to rank 2: 50.06 MB/s are refused: node 3 would send 100.1 MB/s with it, "
        "and may 78.0"
    )
    assert experiment.points(parse(experiment, [*settings[:1], "reserve_mb_per_s=34"]), "quick")


def test_mpi_replay_with_as_many_reserved_flows_as_ranks_writes_its_rows(tmp_path) -> None:
    """Their list is as long as that of the ranks, and is not dealt out to them."""
    experiment = find("mpi-replay")
    parameters = parse(experiment, ["reserve=[[0, 2], [1, 0], [3, 1], [3, 2]]", "reserve_mb_per_s=20"])
    outcomes = [
        Outcome(
            point=point,
            results=experiment.results(parameters, point, times()(point)),
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, "quick")
    ]
    write_csv(tmp_path / "results.csv", outcomes, experiment.by_flow)
    with (tmp_path / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [row["flow"] for row in found] == ["0", "1", "2", "3"] * len(outcomes)
    assert {row["reserve"] for row in found} == {"[]", "[[0, 2], [1, 0], [3, 1], [3, 2]]"}
