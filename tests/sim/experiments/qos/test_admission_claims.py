"""Claims of admission-mesh and admission-cluster: each fails when what it says does not hold. No simulator."""

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.qos.admission_cluster import AdmissionCluster, AdmissionClusterParameters
from lanikai.sim.experiments.qos.admission_mesh import AdmissionMesh, AdmissionMeshParameters
from lanikai.sim.experiments.qos.mix import CLASSES, FRAME_CYCLES, Mix
from lanikai.sim.experiments.qos.streams import plan_streams
from lanikai.sim.host.hca.credit import initial_credits
from lanikai.sim.published import table

LATENCY = {
    # At the lowest load admission alone is second, at the highest congestion control alone.
    "low": {"both": 5.0, "admission": 6.0, "congestion": 8.0, "none": 9.0},
    "high": {"both": 20.0, "admission": 60.0, "congestion": 40.0, "none": 90.0},
}


def verdicts(experiment, parameters, results, size="quick"):
    outcomes = [
        Outcome(point=point, results=results(point), seed=1, cycles=1, wall_seconds=1.0)
        for point in experiment.points(parameters, size)
    ]
    return outcomes, [claim.holds for claim in experiment.claims(parameters, outcomes)]


def mesh(changes=()):
    """The verdicts where everything is as published, but for `changes` {(scheme, load, name): value}."""
    published = table("admission-mesh")
    known = dict(zip(published["injection_pct"], published["rejection_pct"]["admission"], strict=True))

    def results(point):
        scheme, load = point.parameters["scheme"], point.parameters["load"]
        latency = LATENCY["low" if load == 0.4 else "high"][scheme]
        found = {
            "rejection_pct": known[round(100 * load)] if scheme in ("both", "admission") else 0.0,
            "real_time_latency_us": latency,
            "best_effort_latency_us": 3 * latency,
            "control_latency_us": 4.0 if scheme in ("both", "admission") else 4.1,
            "real_time_throughput": 0.3,
            "waited": 100,
            "throughput": 0.4,
            "failed": 0,
            "unanswered": 0,
        }
        return found | {
            name: value for (s, at, name), value in dict(changes).items() if (s, at) == (scheme, load)
        }

    return verdicts(AdmissionMesh(), AdmissionMeshParameters(), results)


def test_what_is_published_of_the_mesh_holds():
    outcomes, found = mesh()
    assert found == [True] * 11 and all(outcome.within for outcome in outcomes)


@pytest.mark.parametrize(
    ("claim", "place", "value"),
    [
        (0, ("admission", 0.4, "rejection_pct"), 16.4 * 2.01),
        (0, ("both", 0.7, "rejection_pct"), 10.4 / 2.01),
        (1, ("both", 0.7, "rejection_pct"), 10.5),
        (2, ("none", 0.4, "rejection_pct"), 0.1),
        (2, ("congestion", 0.4, "real_time_throughput"), 0.0),
        (3, ("both", 0.4, "real_time_latency_us"), 6.4),
        (4, ("both", 0.7, "best_effort_latency_us"), 127.0),
        (5, ("congestion", 0.4, "real_time_latency_us"), 9.5),
        (5, ("admission", 0.7, "best_effort_latency_us"), 300.0),
        (6, ("admission", 0.4, "real_time_latency_us"), 8.1),
        (7, ("congestion", 0.7, "real_time_latency_us"), 60.1),
        (8, ("none", 0.7, "control_latency_us"), 7.0),
        (9, ("congestion", 0.7, "waited"), 0),
        (10, ("none", 0.7, "failed"), 1),
        (10, ("both", 0.7, "unanswered"), 1),
    ],
)
def test_a_claim_on_the_mesh_fails_for_what_it_denies(claim, place, value):
    assert mesh({place: value})[1][claim] is False


def cluster(changes=(), **settings):
    def results(point):
        scheme, load = point.parameters["scheme"], point.parameters["load"]
        calm = scheme == "both"
        found = {
            "frames": 2500,
            "dmp": 0.002 if calm else 0.05,
            "dmt_ms": 0.04 if calm else 0.5,
            "best_effort_latency_us": 10.0 if calm else 12.0 if load < 0.8 else 150.0,
            "control_latency_us": 3.0 if calm else 4.0,
            "waited": 100,
            "throughput": 0.4,
            "failed": 0,
            "unanswered": 0,
        }
        return found | {
            name: value for (s, at, name), value in dict(changes).items() if (s, at) == (scheme, load)
        }

    return verdicts(AdmissionCluster(), AdmissionClusterParameters(**settings), results)


def test_what_is_published_of_the_cluster_holds():
    outcomes, found = cluster(frame_cycles=FRAME_CYCLES)
    assert found == [True] * 9
    assert [outcome.within for outcome in outcomes] == [True, None, None] * 2
    # Shorter frames are judged by orders alone.
    assert cluster()[1] == [None] * 2 + [True] * 7


@pytest.mark.parametrize(
    ("claim", "place", "value"),
    [
        (0, ("both", 0.6, "dmp"), 0.0061),
        (0, ("both", 0.8, "dmp"), 0.0006),
        (1, ("both", 0.8, "dmt_ms"), 0.121),
        (1, ("both", 0.8, "dmt_ms"), None),
        (2, ("both", 0.8, "dmp"), 0.0055),
        (3, ("none", 0.6, "dmp"), 0.002),
        (3, ("none", 0.8, "dmt_ms"), 0.03),
        (4, ("both", 0.6, "best_effort_latency_us"), 12.7),
        (5, ("none", 0.8, "best_effort_latency_us"), 99.0),
        (6, ("both", 0.6, "control_latency_us"), 4.3),
        (7, ("congestion", 0.8, "waited"), 0),
        (8, ("both", 0.6, "failed"), 1),
    ],
)
def test_a_claim_on_the_cluster_fails_for_what_it_denies(claim, place, value):
    assert cluster({place: value}, frame_cycles=FRAME_CYCLES)[1][claim] is False


def test_dmp_grows_by_more_than_two_standard_errors_of_a_difference():
    """0.05 of 2500 frames: a standard error of 0.0045 each, and 0.0063 of their difference."""
    for high, holds in ((0.0620, True), (0.0645, False)):
        assert cluster({("both", 0.6, "dmp"): 0.05, ("both", 0.8, "dmp"): high})[1][2] is holds


def test_credits_are_not_asked_for_below_saturation():
    assert cluster(loads=[0.6])[1][7] is None


@pytest.mark.parametrize(
    ("experiment", "parameters", "part"),
    [(AdmissionMesh(), AdmissionMeshParameters, 5), (AdmissionCluster(), AdmissionClusterParameters, 10)],
)
def test_the_quick_size_has_a_part_of_the_time_and_of_the_credits(experiment, parameters, part):
    quick, full = (Mix(**experiment.points(parameters(), size)[0].spec) for size in ("quick", "full"))
    for name in ("credit_count", "buffer_messages", "warmup_cycles", "window_cycles"):
        assert getattr(full, name) / getattr(quick, name) == pytest.approx(part, rel=0.01), name
    assert Mix(**experiment.points(parameters(credits=7), "quick")[0].spec).credit_count == 7
    # A credit for each connection, and all of best effort's, where nobody refuses any.
    for load in (0.4, 0.6, 0.7, 0.8):
        for streams in plan_streams(quick.replace(load=load), nodes=25, seed=1):
            asked = [one.units for one in streams]
            found, left = initial_credits(
                buffer_messages=quick.buffer_messages, link_bandwidth=1020, bandwidths=asked
            )
            assert left >= quick.credit_count and min(found) >= 1


def test_no_late_frame_is_better_than_a_few():
    changes = {
        ("both", load, name): value for load in (0.6, 0.8) for name, value in (("dmp", 0.0), ("dmt_ms", None))
    }
    assert cluster(changes)[1][2:4] == [True, True]


def test_results_are_in_the_units_of_the_document():
    """100 messages of 40 flits on a 5x5 mesh, 50 cycles each, and 2 of 8 frames late by 1000 cycles in all."""
    experiment, parameters = AdmissionMesh(), AdmissionMeshParameters()
    point = experiment.points(parameters, "quick")[0]
    names = "born born_flits arrived flits latency_cycles since_birth_cycles longest_cycles waited dropped waiting"
    one = dict.fromkeys(names.split(), 0) | {"arrived": 100, "flits": 4000, "latency_cycles": 5000}
    counts = {
        "streams": 40,
        "refused": 5,
        "unanswered": 0,
        "frames": 8,
        "missed": 2,
        "late_cycles": 1000,
        "failed": 0,
    }
    found = experiment.results(parameters, point, counts | {"classes": dict.fromkeys(CLASSES, one)})
    cycles = Mix(**point.spec).window_cycles
    assert found["rejection_pct"] == 12.5 and found["dmp"] == 0.25
    assert found["dmt_ms"] == pytest.approx(500 * 80e-6)
    assert found["real_time_latency_us"] == pytest.approx(50 * 0.08)
    assert found["real_time_throughput"] == 4000 / (25 * cycles) == found["throughput"] / 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemes": ["x"]}, "schemes: 'x': one of both, admission, congestion, none"),
        ({"loads": [1.5]}, "loads: 1.5: above 0 and at most 1"),
    ],
)
@pytest.mark.parametrize("part", [AdmissionMeshParameters, AdmissionClusterParameters])
def test_what_cannot_be_run_is_refused(part, changes, message):
    with pytest.raises(ConfigError) as error:
        part(**changes)
    assert str(error.value) == f"{part.__name__}: {message}"


def test_all_schemes_of_a_load_have_the_same_streams_and_their_own_controls():
    points = AdmissionMesh().points(AdmissionMeshParameters(loads=[0.5]), "quick")
    assert {point.workload for point in points} == {"load 0.5"}
    assert [(Mix(**point.spec).admission, Mix(**point.spec).credits) for point in points] == [
        (True, "global"),
        (True, "none"),
        (False, "global"),
        (False, "none"),
    ]
