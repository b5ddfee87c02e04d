"""via-latency: its points, and its claims on made-up results."""

import pytest
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.experiments.via.ends import allowed_us
from lanikai.sim.experiments.via.latency import JUDGED_BYTES
from lanikai.sim.published import table

EXPERIMENT = EXPERIMENTS["via-latency"]
PARAMETERS = EXPERIMENT.Parameters()
POINTS = EXPERIMENT.points(PARAMETERS, "quick")


def outcomes(change=lambda point, name, us: us):
    """Outcomes as published, `change`d."""
    return [
        Outcome(
            point=point,
            results={name: change(point, name, us) for name, us in point.published.items()},
            seed=1,
            cycles=1,
            wall_seconds=0.0,
        )
        for point in POINTS
    ]


def verdicts(change):
    return [claim.holds for claim in EXPERIMENT.claims(PARAMETERS, outcomes(change))]


def test_every_design_and_size_of_the_table_is_a_point():
    assert len(POINTS) == 12 and [point.spec["rounds"] for point in POINTS] == [3] * 12
    first = POINTS[0]
    assert first.label == "svia, 4 bytes" and first.published["one_way_us"] == 30
    assert (
        first.published["send_program_descriptor_us"] == first.published["receive_program_descriptor_us"] == 3
    )
    assert "receive_descriptor_down_us" not in POINTS[4].published  # they are fetched beforehand
    sizes = table("via-latency")["message_bytes"]
    assert [point.parameters["message_bytes"] for point in POINTS] == sizes * 3


def test_ten_percent_or_two_microseconds_are_allowed():
    assert allowed_us(3) == allowed_us(20) == 2 and allowed_us(385) == 38.5
    for point in POINTS:
        for name, us in point.published.items():
            assert point.tolerance[name] * us == pytest.approx(allowed_us(us))


def test_claims_hold_of_what_was_published():
    """All but one: in the table PVIA and QoSVIA take equally long for 1 KB."""
    assert verdicts(lambda point, name, us: us) == [True] * 6 + [False]
    slower = {"svia": 0, "pvia": 0, "qosvia": 0.5}
    assert verdicts(lambda point, name, us: us + slower[point.parameters["design"]]) == [True] * 7


@pytest.mark.parametrize("off", [1, -1])
def test_a_judged_row_that_is_too_far_off_breaks_its_claim(off):
    def change(point, name, us):
        mine = point.parameters == {"design": "pvia", "message_bytes": 16384}
        return us + off * allowed_us(us) * 1.01 if mine and name == "send_data_down_us" else us

    claims = EXPERIMENT.claims(PARAMETERS, outcomes(change))
    assert [claim.holds for claim in claims] == [True] * 3 + [False] + [True] * 2 + [False]
    assert "PVIA, 16384 bytes" in claims[3].text and "data on the card, at the sender: " in claims[3].text


def test_columns_that_are_fitted_are_not_judged():
    def change(point, name, us):
        return us if point.parameters["message_bytes"] in JUDGED_BYTES else us + 100 * (name != "one_way_us")

    assert verdicts(change) == [True] * 6 + [False]


def test_without_all_designs_the_order_is_not_judged():
    parameters = EXPERIMENT.Parameters(designs=["svia"])
    mine = [one for one in outcomes() if one.point.parameters["design"] == "svia"]
    claims = EXPERIMENT.claims(parameters, mine)
    assert [claim.holds for claim in claims] == [True, True, None, None, None, None, None]
