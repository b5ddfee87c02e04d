"""video-reservation: its points, and claims that fail when broken.

They fail when a film has not what it reserved, when it is late, or when a control is none.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from lanikai.sim.experiments.video_reservation import search_bytes
from matplotlib.figure import Figure

HZ, SPAN = 33_000_000, 1_320_000
GOOD = {"always": 1.0, "clock": 1.0, "packets": 0.5, "nothing": 0.6}


def judge(
    speed: dict[str, float], settings: tuple[str, ...] = (), late: float = 0.0, dead: bool = False
) -> list:
    """The claims, if films have so much of what they reserve, and a frame is `late` ms late. With `dead` they send
    nothing any more after a third of the time."""
    experiment = find("video-reservation")
    parameters = parse(experiment, settings)
    outcomes = []
    for point in experiment.points(parameters, "quick"):
        case, films = point.spec["case"], []
        for film in point.spec["films"]:
            cycles_a_byte = HZ / 1e6 / film["mb_per_s"]
            now, due, arrivals = 0.0, [], []
            for number, size in enumerate(film["frames"]):
                at = now if case == "always" else number * film["interval_us"] * HZ / 1e6
                due.append(round(at))
                now = max(now, at) + size * cycles_a_byte / speed[case]
                arrivals.append(round(now + late * HZ / 1000))
            end = SPAN // 3 if dead else SPAN
            films.append(
                {
                    "due": due,
                    "arrivals": [cycle for cycle in arrivals if cycle <= end],
                    "sizes": film["frames"],
                    "bound_us": film["burst_bytes"] / film["mb_per_s"] + 34 * 48,
                }
            )
        measured = {"clock_hz": HZ, "span_cycles": SPAN, "bulk_bytes": 1, "films": films}
        outcomes.append(
            Outcome(
                point=point,
                results=experiment.results(parameters, point, measured),
                seed=1,
                cycles=1,
                wall_seconds=1.0,
                series={
                    "films": [{"name": "film", "due_ms": [0.0, 1.0], "late_ms": [1.0, 2.0]} for _ in films]
                },
            )
        )
    experiment.plot(parameters, outcomes, Figure())
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, [True] * 5),
        ({"speed": {"always": 0.96}}, [False, True, True, True, True]),
        ({"speed": {"always": 1.04}}, [False, True, True, True, True]),
        ({"speed": {"clock": 0.6}}, [True, False, False, True, True]),
        ({"late": 2.0}, [True, True, False, True, True]),
        ({"speed": {"packets": 1.0}}, [True, True, True, False, True]),
        ({"speed": {"nothing": 1.0}}, [True, True, True, True, False]),
        ({"dead": True}, [False, False, False, True, True]),
    ],
)
def test_claims_hold_for_what_is_right_and_for_nothing_else(change: dict[str, Any], holds):
    change = dict(change)
    speed = GOOD | change.pop("speed", {})
    assert judge(speed, **change) == holds


def test_a_film_of_ones_own_is_judged_without_the_controls(tmp_path):
    film = tmp_path / "mine.bits"
    film.write_text("".join(f"{8 * (500 + 90 * (n % 7))}\n" for n in range(50)))
    assert judge(GOOD, (f'films=["{film}"]', "mb_per_s=[3]")) == [True, True, True, None, None]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("mb_per_s=[1, 2]",), "mb_per_s has 2 rates for 3 films: one for each"),
        (("mb_per_s=[1, 2, 0]",), r"mb_per_s\[2\] = 0: above 0 and at most 20"),
        (('films=["nowhere.bits"]',), "film 'nowhere.bits' cannot be read: No such file or directory"),
        (('films=["a.txt"]',), "its name ends in .bytes or .bits"),
    ],
)
def test_bad_parameters_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        parse(find("video-reservation"), settings)


@pytest.mark.parametrize(
    ("frame_bytes", "rate", "message"),
    [
        (1, "1.0", r"film '.*mine\.bytes': a request of 1\.0 MB/s in messages of 1 bytes: at most 0\.021"),
        (4096, "1e-9", r"film '.*mine\.bytes': a request of 1e-09 MB/s: above 0 \(at least "),
    ],
)
def test_a_rate_that_no_card_keeps_is_refused_before_anything_is_built(tmp_path, frame_bytes, rate, message):
    (tmp_path / "mine.bytes").write_text(f"{frame_bytes}\n")
    experiment = find("video-reservation")
    parameters = parse(experiment, (f'films=["{tmp_path / "mine.bytes"}"]', f"mb_per_s=[{rate}]"))
    with pytest.raises(UserError, match=message):
        experiment.points(parameters, "quick")


def test_films_that_a_node_cannot_keep_together_are_refused_before_anything_is_built():
    """The words and the sums are those of the managers: frames count as the full packets that they may take."""
    experiment = find("video-reservation")
    with pytest.raises(UserError) as caught:
        experiment.points(parse(experiment, ("mb_per_s=[20, 20, 20]",)), "quick")
    assert re.fullmatch(
        r"film '.*starwars-mpeg1\.bits': 20 MB/s, which count as [0-9.]+, a packet as a full one, are refused: node 0 "
        r"would send [0-9.]+ MB/s with it, and may 78\.0",
        str(caught.value),
    )
    assert experiment.points(parse(experiment, ("mb_per_s=[20, 2, 2]",)), "quick")


def test_searches_have_the_sizes_of_the_distribution():
    assert [search_bytes(share) for share in (0.0, 0.15, 0.175, 0.2, 0.5, 1.0)] == [
        1,
        10_000,
        15_000,
        20_000,
        65_536,
        65_536,
    ]
