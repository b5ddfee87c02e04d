"""Claims of wrr-variants: each fails when what it says does not hold. No simulator."""

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.qos.wrr_variants import VARIANTS, WrrVariants, WrrVariantsParameters
from lanikai.sim.published import table

FRAMES = 40_000


def judged(changes=None, *, size="full", **parameters):
    """Verdicts on outcomes as the document has them, but for `changes`: {(variant, load): results}."""
    experiment, parameters = WrrVariants(), WrrVariantsParameters(**parameters)
    published = table("wrr-variants")
    outcomes = []
    for point in experiment.points(parameters, size):
        variant, load = point.parameters["variant"], point.parameters["load"]
        place = published["load_pct"].index(round(100 * load))
        dmp = published[variant]["dmp"][place]
        results = {
            "dmp": dmp,
            "dmt_ms": published[variant]["dmt_ms"][place],
            "frames": FRAMES,
            "missed": round(dmp * FRAMES),
            "real_time_arrived": 1.0,
            "control_us": 2.0,
            "unanswered": 0,
            "failed": 0,
        } | (changes or {}).get((variant, load), {})
        outcomes.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


def test_what_is_published_holds():
    assert judged() == [True] * 10
    # In the quick size a stream has fewer frames, and DMP is not held against the document's.
    assert judged(size="quick") == [None] + [True] * 9


@pytest.mark.parametrize(
    ("claim", "variant", "load", "changes"),
    [
        (0, "small_slow", 0.6, {"dmp": 0.034 * 3.1}),
        (0, "large_slow", 0.7, {"dmp": 0.032 / 3.1}),
        (1, "small_fast", 0.8, {"dmt_ms": 0.040 * 3.1}),
        (1, "large_fast", 0.6, {"dmt_ms": 0.031 / 3.1}),
        # The document has 0.027 and 0.024 for the fast pointers, 0.029 and 0.032 for the slow ones.
        (2, "large_fast", 0.7, {"dmp": 0.035}),
        (2, "large_slow", 0.7, {"dmp": 0.022}),
        (3, "small_fast", 0.8, {"dmt_ms": 0.120}),
        (3, "large_slow", 0.8, {"dmt_ms": 0.030}),
        (4, "small_fast", 0.8, {"dmt_ms": 0.060}),
        (4, "large_slow", 0.8, {"dmt_ms": 0.060}),
        (5, "small_fast", 0.6, {"dmp": 0.045}),
        (5, "small_slow", 0.7, {"dmp": 0.043}),
        (6, "large_slow", 0.8, {"dmp": 0.040}),
        (7, "small_slow", 0.8, {"dmt_ms": 0.033}),
        (8, "large_fast", 0.7, {"real_time_arrived": 0.96}),
        (8, "small_slow", 0.6, {"control_us": None}),
        (9, "large_fast", 0.7, {"failed": 1}),
        (9, "small_fast", 0.6, {"unanswered": 1}),
    ],
)
def test_a_claim_fails_for_what_it_denies(claim, variant, load, changes):
    assert judged({(variant, load): changes})[claim] is False


def test_a_difference_within_chance_fails_nothing():
    """With 40,000 frames two standard errors of two DMPs near 0.03 are 0.0024."""
    assert judged({("large_fast", 0.7): {"dmp": 0.031}})[2] is True
    assert judged({("large_fast", 0.7): {"dmp": 0.032}})[2] is False


def test_claims_are_not_judged_without_their_subject():
    one = judged(variants=["small_fast"], loads=[0.6])
    assert one == [True, True, None, None, None, None, None, None, True, True]
    assert judged(network="mesh4x4")[:4] == [None] * 4
    assert judged(frames=20)[0] is None and judged(frame_cycles=20_000)[0] is None


def test_points_differ_in_frame_and_arbiter_and_share_their_seed():
    experiment, parameters = WrrVariants(), WrrVariantsParameters(loads=[0.7])
    points = experiment.points(parameters, "quick")
    assert [point.parameters["variant"] for point in points] == list(VARIANTS)
    assert {point.workload for point in points} == {"load 0.7"}
    systems = [experiment.system(parameters, point) for point in points]
    assert [s.hca.vl_arbiter for s in systems] == ["table_fast", "table_slow"] * 2
    assert [s.network.router.vl_arbiter for s in systems] == ["table_fast", "table_slow"] * 2
    frames = [point.spec["admission_config"]["frame"] for point in points]
    assert frames == ["small", "small", "large", "large"]


def test_results_are_means_and_parts():
    experiment, parameters = WrrVariants(), WrrVariantsParameters()
    point = experiment.points(parameters, "quick")[0]
    nothing = {"arrived": 0, "latency_cycles": 0, "flits": 0, "born_flits": 0, "waited": 0, "dropped": 0}
    measured = {
        "frames": 200,
        "missed": 10,
        "late_cycles": 5_000,
        "streams": 50,
        "refused": 1,
        "unanswered": 0,
        "failed": 0,
        "classes": {
            "real_time": {"arrived": 4, "latency_cycles": 800, "flits": 160, "born_flits": 200}
            | {"waited": 0, "dropped": 3},
            "best_effort": {"arrived": 2, "latency_cycles": 1000, "flits": 80, "born_flits": 80}
            | {"waited": 1, "dropped": 0},
            "control": nothing,
        },
    }
    assert experiment.results(parameters, point, measured) == pytest.approx(
        {
            "dmp": 0.05,
            "dmt_ms": 0.04,  # 500 cycles of 80 ns
            "frames": 200,
            "missed": 10,
            "real_time_us": 16.0,
            "best_effort_us": 40.0,
            "control_us": None,
            "real_time_arrived": 0.8,
            "rejected_pct": 2.0,
            "unanswered": 0,
            "waited": 1,
            "dropped": 3,
            "failed": 0,
        }
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variants": ["x"]}, "variants: 'x': one of small_fast, small_slow, large_fast, large_slow"),
        ({"loads": [1.5]}, "loads: 1.5: above 0 and at most 1"),
        ({"frame_cycles": 4999}, "frame_cycles = 4999: 0, or at least 5000"),
    ],
)
def test_what_cannot_be_run_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        WrrVariantsParameters(**changes)
    assert message in str(error.value)
