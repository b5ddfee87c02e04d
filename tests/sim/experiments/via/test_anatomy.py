"""via-anatomy: lanes, overlaps and claims on made-up traces."""

from dataclasses import replace

import pytest
from lanikai.firmware.via.ladder import LADDER
from lanikai.firmware.via.trace import Stage
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.display import result_table
from lanikai.sim.experiments.framework.results import rows
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.experiments.via.timeline import LANES, lanes, overlapping, spared, stage_means
from matplotlib.figure import Figure

EXPERIMENT = EXPERIMENTS["via-anatomy"]


def message(number, start, *, receive=False, without=(), length=10):
    """A message whose stages follow one another from a cycle on."""
    spans, at = [], start
    for stage in Stage:
        if stage not in without:
            spans.append((stage, at, at + length))
            at += length
    return {"number": number, "channel": 1, "receive": receive, "spans": spans}


def series(messages):
    nothing = {"sender": [(0, 5)], "receiver": []}
    return {
        "messages": messages,
        "steps": nothing,
        "posts": nothing,
        "bursts": [(0, 400)],
        "clock_hz": 66_000_000,
    }


def test_spans_overlap_where_two_messages_have_something_at_once():
    assert overlapping([message(0, 0), message(1, 120)]) == 0
    # The waits of the second, stages 1 and 2, are no work: they may well lie beside the first.
    assert overlapping([message(0, 0), message(1, 100)]) == 0
    assert overlapping([message(0, 0), message(1, 95)]) == 1
    assert overlapping([message(0, 0), message(1, 0, receive=True)]) == 0


def test_a_spared_descriptor_has_no_stages_3_and_4():
    spares = (Stage.PROGRAM_DESCRIPTOR, Stage.DESCRIPTOR)
    assert spared([message(0, 0), message(1, 0, without=spares)]) == 0.5 and spared([]) == 0


def test_means_are_of_each_stage():
    found = stage_means([message(0, 0), message(1, 0, without=(Stage.SEND,), length=30)], 2.0)
    assert found == [40.0] * 7 + [10.0] + [40.0] * 4


def test_a_message_comes_by_every_lane():
    found = lanes(
        series([message(0, 0), message(0, 200, receive=True, without=(Stage.PROGRAM_SEND, Stage.SEND))])
    )
    assert tuple(found) == LANES
    assert found["link"] == found["network send"] == [(70, 80, 0)]
    assert [begin for begin, _, _ in found["host DMA, sender"]] == [30, 50, 90, 110]
    assert found["network receive"] == [(210, 220, 0)] and len(found["host DMA, receiver"]) == 4
    assert found["processor, sender"] == [(0, 5, -1)] and (0, 5, -1) in found["bus, sender"]


def outcomes(change=lambda name, results: None, **settings):
    parameters = EXPERIMENT.Parameters(**settings)
    made = []
    for point in EXPERIMENT.points(parameters, "quick"):
        name = point.parameters["design"]
        fine = {
            "overlaps": 0 if name == "Base" else 9,
            "spared": 1.0 if "shadow" in name else 0.5 if "tailgating" in name else 0.0,
            "spared_receive": 1.0 if "shadow" in name else 0.0,
        }
        change(name, fine)
        made.append(
            Outcome(
                point=point,
                results=fine,
                seed=1,
                cycles=1,
                wall_seconds=0.0,
                series=series([message(0, 0), message(0, 200, receive=True)]),
            )
        )
    return parameters, made


def verdicts(change=lambda name, results: None, **settings):
    return [claim.holds for claim in EXPERIMENT.claims(*outcomes(change, **settings))]


def test_every_design_of_the_ladder_is_a_point_of_one_workload():
    points = EXPERIMENT.points(EXPERIMENT.Parameters(), "quick")
    assert [point.label for point in points] == list(LADDER) and len(
        {point.workload for point in points}
    ) == 1
    assert verdicts() == [True] * 5
    with pytest.raises(UserError, match=r"^designs: 'Door' is none; valid designs: Base, "):
        EXPERIMENT.points(EXPERIMENT.Parameters(designs=["Door"]), "quick")


@pytest.mark.parametrize(
    ("name", "results", "broken"),
    [
        ("Base", {"overlaps": 1}, 0),
        ("Base+O", {"overlaps": 0}, 1),
        ("Door+O+DMAQ", {"spared": 0.1}, 2),
        ("Door+O+DMAQ tailgating", {"spared": 0.3}, 3),
        ("Door+O+DMAQ tailgating", {"spared": 0.7}, 3),
        ("Door+O+DMAQ+2CPU shadow queues", {"spared": 0.9}, 4),
        ("Door+O+DMAQ+2CPU shadow queues", {"spared_receive": 0.9}, 4),
    ],
)
def test_each_claim_can_fail(name, results, broken):
    found = verdicts(lambda design, fine: fine.update(results) if design == name else None)
    assert [i for i, holds in enumerate(found) if holds is False] == [broken]


def test_stages_have_the_numbers_of_the_figure():
    _, made = outcomes(designs=["Base"])
    made[0] = replace(made[0], results={"send_us": [1.0] * 12})
    found = rows(made, EXPERIMENT.by_flow, EXPERIMENT.element, EXPERIMENT.first_element)
    assert [row["stage"] for row in found] == list(Stage)
    table = result_table(made, EXPERIMENT.by_flow, EXPERIMENT.element, EXPERIMENT.first_element)
    assert list(table.columns[1].cells) == [str(int(stage)) for stage in Stage]


def test_claims_are_judged_where_their_design_was_run():
    assert verdicts(designs=["Base"]) == [True, None, True, None, None]
    assert verdicts(burst=1) == [True, True, True, None, True]
    assert verdicts(burst=1, vis=1)[:2] == [None, None]


def test_the_timeline_is_drawn():
    figure = Figure()
    EXPERIMENT.plot(*outcomes(designs=["Base", "Base+O"]), figure)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(figure.axes) == 2 and labels == list(LANES)
