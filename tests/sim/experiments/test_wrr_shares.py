"""wrr-shares without the simulator: its weights, frames and tables, and claims that fail when broken."""

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.hdl.network import single_router
from lanikai.hdl.weights import LARGE_FRAME
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.wrr_shares import VARIANTS, WrrShares
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

EXPERIMENT = WrrShares()
ALL = f"variants={','.join(VARIANTS)}"


def test_weights_of_both_frames_and_what_each_arbiter_is_given():
    parameters = parse(EXPERIMENT, [ALL])
    assert parameters.weights("small_fast", "full") == [1, 3, 4, 8]
    assert parameters.weights("large_slow", "quick") == [30, 130, 170, 310]
    assert parameters.weights("large_slow", "full") == [765, 3315, 4335, 7905]
    assert sum(parameters.weights("large_slow", "full")) == LARGE_FRAME
    assert len(parameters.table("large_slow", "full")) == 64
    # 16 flits of 32 bits are one unit of 64 bytes; quanta are flits, in every row that is written.
    assert parameters.frame("iba", "quick") == [16, 48, 64, 128] == parameters.frame("deficit", "quick")
    assert parameters.table("iba", "quick") == [(0, 1), (1, 3), (2, 4), (3, 8)]
    assert parameters.table("deficit", "quick") == [(0, 16), (1, 48), (2, 64), (3, 128)]
    assert parameters.table("iba", "quick", backwards=True) == [(0, 8), (1, 4), (2, 3), (3, 1)]
    assert parameters.table("deficit", "quick", backwards=True) == [(0, 128), (1, 64), (2, 48), (3, 16)]
    # 40 flits are 2.5 units, charged as 3: weights of 1, 3, 4, 8 are 1, 1, 2, 3 packets.
    longer = parse(EXPERIMENT, ["packet_flits=40"])
    assert longer.frame("iba", "quick") == [40, 40, 80, 120]


def test_a_large_frame_fits_the_table_whatever_the_bandwidths():
    parameters = parse(EXPERIMENT, ["bandwidths=[1,2,3,4]"])
    assert sum(parameters.weights("large_fast", "full")) == 255 * 61
    assert len(parameters.table("large_fast", "full")) <= 64


def test_points_are_subsets_of_vls_in_windows_of_whole_frames():
    parameters = parse(EXPERIMENT, ["variants=small_fast,large_fast", "link_rate=1/2"])
    points = EXPERIMENT.points(parameters, "quick")
    assert [one.parameters["active_vls"] for one in points[:4]] == [[0, 1, 2, 3], [0, 1, 2], [0, 3], [3]]
    for point in points:
        if point.parameters["event"]:
            continue
        values, spec = point.parameters, point.spec
        assert spec["window_cycles"] == 2 * values["frames"] * sum(values["frame_flits"])
        assert [one["vl_first"] for one in spec["classes"]] == values["active_vls"]
        assert values["frames"] >= 50
        assert min(n for n in values["frame_flits"] if n) * values["frames"] >= 1000
        # Idle VLs keep their weights.
        assert {vl for vl, _ in spec["table"]} == {0, 1, 2, 3}
    full = EXPERIMENT.points(parameters, "full")
    assert len({tuple(one.parameters["active_vls"]) for one in full}) == 15 and len(full) == 2 * (15 + 3)
    assert EXPERIMENT.system(parameters, points[0]) == EXPERIMENT.system(parameters, points[-1])


def test_events_change_who_sends_or_the_weights_before_the_window():
    parameters = parse(EXPERIMENT, ["variants=small_fast"])
    assert parameters.rate == 1
    points = {point.parameters["event"]: point for point in EXPERIMENT.points(parameters, "quick")}
    assert points.keys() == {None, "leaves", "returns", "rewritten"}
    leaves, returns, rewritten = (points[event] for event in ("leaves", "returns", "rewritten"))
    for point in (leaves, returns):
        # The heaviest VL is the one that stops: the first class.
        assert [one["vl_first"] for one in point.spec["classes"]] == [3, 0, 1, 2]
    assert leaves.parameters["frame_flits"] == [1, 3, 4, 0] and leaves.parameters["active_vls"] == [0, 1, 2]
    assert returns.parameters["frame_flits"] == [1, 3, 4, 8]
    assert returns.spec["warmup_cycles"] - leaves.spec["warmup_cycles"] == 400
    assert rewritten.parameters["frame_flits"] == [8, 4, 3, 1] == rewritten.parameters["weights"]
    assert rewritten.spec["table"] == returns.spec["table"] == [(0, 1), (1, 3), (2, 4), (3, 8)]
    assert rewritten.spec["new_table"] == [(0, 8), (1, 4), (2, 3), (3, 1)]
    measured = {"accepted_flits": {"0": 10, "1": 30, "2": 40, "3": 4}, "window_cycles": 84}
    # The share that a VL still gets after it has left is missing in the others' shares.
    assert EXPERIMENT.results(parameters, leaves, measured)["largest_error"] > 0.04
    assert EXPERIMENT.results(parameters, rewritten, measured)["bandwidth_share"][0] == 31 / 64


def test_results_and_claims():
    parameters = parse(EXPERIMENT, ["variants=small_slow", "bandwidths=[1,3]", "k=2", "link_rate=1/2"])
    points = [one for one in EXPERIMENT.points(parameters, "quick") if not one.parameters["event"]]
    assert [one.parameters["active_vls"] for one in points] == [[0, 1], [0], [1]]

    def judge(both, window=8000):
        outcomes = []
        for point, accepted in zip(points, (both, [4000], [4000]), strict=True):
            vls = point.parameters["active_vls"]
            measured = {
                "accepted_flits": dict(zip(map(str, vls), accepted, strict=True)),
                "window_cycles": window,
            }
            results = EXPERIMENT.results(parameters, point, measured)
            outcomes.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
        return outcomes, [claim.holds for claim in EXPERIMENT.claims(parameters, outcomes)]

    outcomes, holds = judge([1000, 3000])
    assert holds == [True, True]
    assert outcomes[0].results == {
        "accepted_flits": [1000, 3000],
        "share": [0.25, 0.75],
        "weight_share": [0.25, 0.75],
        "bandwidth_share": [0.25, 0.75],
        "largest_error": 0.0,
        "link_use": 1.0,
    }
    assert outcomes[2].results["share"] == [0.0, 1.0]
    assert judge([1009, 2991])[1] == [True, True]
    assert judge([1011, 2989])[1] == [False, True]
    assert judge([1000, 3000], window=8100)[1] == [True, False]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("variants=small", "variants = 'small': some of small_fast, small_slow"),
        ("variants=iba,iba", "one is named twice"),
        ("bandwidths=[1,0]", "bandwidths[1] = 0: 1 to 65535"),
        ("link_rate=3/2", "link_rate = '3/2': a fraction above 0 and at most 1"),
        ("link_rate=fast", "link_rate = 'fast': a fraction above 0 and at most 1"),
    ],
)
def test_bad_parameters_are_named(setting, text):
    with pytest.raises(UserError) as caught:
        parse(EXPERIMENT, [setting])
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["variants=deficit", "packet_flits=40"], "quanta of [40, 120, 160, 320] flits; at most 255"),
        (["bandwidths=[1,2,3,4]", "large_frame_flits=16320"], "need 66 entries; the table has 64"),
    ],
)
def test_weights_that_do_not_fit_are_named(settings, text):
    with pytest.raises(UserError) as caught:
        parse(EXPERIMENT, settings)
    assert text in str(caught.value)


def test_a_bench_has_agents_only_where_there_is_something_to_set():
    with pytest.raises(
        ConfigError, match=r"agents = True: network\.router has nothing that an agent could set"
    ):
        TrafficNetworkConfig(network=single_router(3, router=RouterConfig()), agents=True)
