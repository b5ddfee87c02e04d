"""The experiments on GM: their points, their results from measurements, and claims that fail when broken."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.incoming_rate import smallest_harmless
from lanikai.sim.experiments.measure.gm_flows import (
    MAX_IDT_TICKS,
    T_TICKS,
    bandwidths,
    ideal_mb_per_s,
    proportions,
)
from lanikai.sim.experiments.rate_overhead import PROGRAMS, RANGE
from lanikai.sim.experiments.registry import find
from lanikai.sim.experiments.wormhole_unfairness import WAYS
from matplotlib.figure import Figure

CLOCK_HZ = 33_000_000
NAMES = (
    "fair-queueing",
    "idt-sweep",
    "incoming-rate",
    "rate-overhead",
    "rate-table",
    "share-bidir",
    "share-receiver",
    "wormhole-unfairness",
)


def flows(*mb_per_s: float) -> dict:
    """The measurement of a `TimeWindow` for flows with these bandwidths."""
    return {
        "payload_bytes": [round(one * 1_000_000) for one in mb_per_s],
        "window_cycles": CLOCK_HZ,
        "clock_hz": CLOCK_HZ,
    }


def judge(name: str, answer, settings: tuple[str, ...] = ()) -> tuple[list[bool | None], list[bool]]:
    """The verdict of every point and claim of the quick size, with the measurement `answer(point)`. The plot is drawn,
    too."""
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
        for point in experiment.points(parameters, "quick")
    ]
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert figure.axes
    return [one.within for one in outcomes], [
        claim.holds for claim in experiment.claims(parameters, outcomes)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_points_are_told_apart_and_full_is_the_longer_size(name):
    experiment = find(name)
    parameters = parse(experiment, [])
    quick, full = (experiment.points(parameters, size) for size in ("quick", "full"))
    for points in (quick, full):
        assert len({point.label for point in points}) == len(points)
    assert len(full) >= len(quick) and full[0].spec != quick[0].spec


def test_a_flow_with_nothing_to_measure_has_no_bandwidth():
    assert bandwidths({"payload_bytes": [0, 4096], "window_cycles": 33, "clock_hz": CLOCK_HZ}) == [0, 4096]


def table_rows(idts: list[int], slots: int, slot_ticks: int) -> list[dict]:
    """Figure 3.3 of the thesis, in plain Python."""
    ndts, rows = [0] * len(idts), []
    for slot in range(slots):
        before = [ndt * slot_ticks for ndt in ndts]
        flow = ndts.index(min(ndts))
        if ndts[flow] <= slot:
            ndts[flow] += idts[flow]
        else:
            flow = None
        rows.append({"flow": flow, "ndt_ticks": before})
    return rows


def test_rate_table_is_the_algorithm_of_the_thesis():
    def right(point):
        spec = point.spec
        return {"rows": table_rows(spec["idt_over_T"], spec["slots"], spec["ticks_per_T"])}

    assert judge("rate-table", right) == ([True], [True])
    assert judge("rate-table", right, ("idt_over_T=[4, 4, 2]",)) == ([None], [True])

    def a_tick_late(point):
        rows = right(point)["rows"]
        rows[3]["ndt_ticks"][0] += 1
        return {"rows": rows}

    def b_first(point):
        rows = right(point)["rows"]
        rows[0]["flow"] = 1
        return {"rows": rows}

    def starved(point):
        rows = right(point)["rows"]
        for row in rows[20:]:
            row["flow"] = 0 if row["flow"] == 1 else row["flow"]
        return {"rows": rows}

    assert judge("rate-table", a_tick_late) == ([False], [True])
    assert judge("rate-table", b_first)[0] == [False]
    assert judge("rate-table", starved)[1] == [False]


def test_idt_sweep_finds_the_knee():
    def lone(knee: int, peak: float = 1.0):
        return lambda point: flows(peak * ideal_mb_per_s(max(knee, point.parameters["idt_ticks"])))

    verdicts, claims = judge("idt-sweep", lone(T_TICKS))
    assert verdicts.count(True) == 2 and False not in verdicts and claims == [True, True]
    verdicts, claims = judge("idt-sweep", lone(110))
    assert verdicts[0] is False and claims == [False, True]
    assert judge("idt-sweep", lone(60))[1] == [True, False]
    assert judge("idt-sweep", lone(T_TICKS), ("idt_ticks=[96, 200]",)) == ([None, None], [True, None])
    assert judge("idt-sweep", lone(T_TICKS), ("idt_ticks=[0, 40]",)) == ([True, None], [None, True])
    # The section is about messages of 64 KB.
    assert judge("idt-sweep", lone(110), ("message_bytes=4096",))[1] == [None, None]
    assert judge("idt-sweep", lone(110), ("message_bytes=131072",))[1] == [False, True]


def test_share_receiver_is_judged_by_shares_and_bandwidths():
    measured = 8.5, 76.5
    verdicts, claims = judge("share-receiver", lambda point: flows(*measured))
    assert verdicts == [True] and all(claims)
    # The last flow loses what the tolerance of shares does not allow, then everything the same part.
    verdicts, claims = judge("share-receiver", lambda point: flows(*measured[:-1], 0.95 * measured[-1]))
    assert verdicts == [False] and claims[0] is False
    verdicts, claims = judge("share-receiver", lambda point: flows(*(0.95 * one for one in measured)))
    assert verdicts == [False] and claims[0] is True


def both_ways(incoming: float = 16.38, out: float = 65.0, more: float = 65.0, first: float = 1.0):
    """A measurement of share-bidir: the outgoing bandwidth as published and where more is asked for. The first flow's
    part is `first` of what it should be."""

    def answer(point):
        share = proportions(point.parameters["out_idt_ticks"])
        total = out if point.parameters["out_idt_ticks"] == [250, 250] else more
        return flows(incoming, total * share[0] * first, total * (1 - share[0] * first))

    return answer


def test_share_bidir_is_judged_by_shares_and_by_what_goes_out_where_more_is_asked_for():
    assert judge("share-bidir", both_ways()) == ([True, True], [True, True])
    assert judge("share-bidir", both_ways(first=1.02)) == ([False, False], [False, True])
    assert judge("share-bidir", both_ways(out=62.9))[0] == [False, True]
    # As published the IDTs ask for what there is. A card that could send more is seen by the other point.
    assert judge("share-bidir", both_ways(more=67.0))[0] == [True, False]


def test_share_bidir_sees_an_idt_that_is_2_ticks_long():
    assert judge("share-bidir", both_ways(incoming=ideal_mb_per_s(502)))[1] == [True, False]
    named = ("out_idt_ticks=[250]", "in_idt_ticks=96")
    assert judge("share-bidir", lambda point: flows(60, 20), named) == ([None], [True, None])


def test_wormhole_unfairness_judges_before_and_after():
    def measured(before: tuple[float, ...], after: tuple[float, ...]):
        return lambda point: flows(*(after if point.parameters["regulated"] else before))

    good = (36, 24, 24, 24), (36, 36, 18, 18)
    assert judge("wormhole-unfairness", measured(*good)) == ([None, None], [True] * 4)
    for number, (before, after) in enumerate(
        [
            ((36, 24, 27, 21), good[1]),  # the router prefers C
            ((25, 24, 24, 24), good[1]),  # B has what A has
            (good[0], (36, 34, 17, 17)),  # regulating C and D is not enough
            (good[0], (36, 36, 18, 24)),  # D is not regulated
        ]
    ):
        claims = judge("wormhole-unfairness", measured(before, after))[1]
        assert claims == [claim != number for claim in range(4)]
    # It has no more than it had: nothing was gained.
    assert judge("wormhole-unfairness", measured((27, 24, 24, 24), (23, 23, 11.5, 11.5)))[1][2] is False


def test_wormhole_unfairness_asks_for_less_of_c_and_d_alone():
    experiment = find("wormhole-unfairness")
    parameters = parse(experiment, ["demand=0.5"])
    before, after = (point.parameters["idt_ticks"] for point in experiment.points(parameters, "quick"))
    # A packet of 4096 bytes is 512 + 3 flits of 64 bits: at 640 Mbit/s 1699.5 cycles, 103 ticks of 16.5.
    assert before == [206] * 4 and after == [206, 206, 412, 412]
    config = experiment.cluster(parameters)
    assert config.nic.link.rate == Fraction(640, 64 * 33)
    network = config.network
    assert [len(network.path(source, target)) for source, target in WAYS] == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("settings", "judged", "why"),
    [
        ((), [True] * 4, ""),
        (
            ("demand=0.6",),
            [True, True, False, False],
            "B, C and D ask for 1.20 of the link between the routers",
        ),
        (
            ("link_mbit_per_s=1280",),
            [True, True, False, False],
            "A and B ask for 143 MB/s of a receiver that ",
        ),
        (("demand=0.35",), [True, False, False, True], "B, C and D want 1.05 of a link"),
        (
            ("demand=0.6", "after=[0.6, 0.3, 0.15, 0.15]"),
            [True, True, False, True],
            "A and B have different rates",
        ),
        (("demand=0.6", "after=[0.45, 0.45, 0.225, 0.225]"), [True] * 4, ""),
        (("link_mbit_per_s=1280", "after=[0.33, 0.33, 0.165, 0.165]"), [True] * 4, ""),
    ],
)
def test_wormhole_unfairness_judges_what_its_rates_are_about(settings, judged, why):
    experiment = find("wormhole-unfairness")
    parameters = parse(experiment, settings)
    outcomes = [
        Outcome(
            point=point,
            results=experiment.results(parameters, point, flows(36, 24, 12, 12)),
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, "quick")
    ]
    claims = experiment.claims(parameters, outcomes)
    assert [claim.holds is not None for claim in claims] == judged
    assert any(why in claim.not_judged for claim in claims)
    with pytest.raises(UserError, match="after has 3 rates: one for each of A, B, C and D, or none"):
        parse(experiment, ["after=[0.4, 0.4, 0.2]"])


NOTHING_MOVES = {
    "fair-queueing": {"payload_bytes": [0, 0], "window_cycles": 1000, "clock_hz": CLOCK_HZ, "order": ""},
    "idt-sweep": flows(0.0),
    "incoming-rate": {
        "alone": flows(0.0, 0.0),
        "found": flows(0.0, 0.0),
        "outgoing_idt_ticks": 0,
        "trials": 2,
    },
    "share-bidir": flows(0.0, 0.0, 0.0),
    "share-receiver": flows(0.0, 0.0),
    "share-senders": {"payload_bytes": [0, 0], "window_cycles": 1000, "clock_hz": CLOCK_HZ},
    "wormhole-unfairness": flows(0.0, 0.0, 0.0, 0.0),
}


@pytest.mark.parametrize("name", NOTHING_MOVES)
def test_no_claim_holds_where_nothing_moves(name):
    verdicts, claims = judge(name, lambda point: NOTHING_MOVES[name])
    assert True not in claims and False in claims, claims
    assert True not in verdicts


def incoming(out: dict[int, float], kept: float = 1.0):
    """A measurement of incoming-rate with these outgoing bandwidths, by IDT of flow 1."""

    def answer(point):
        idt = point.parameters["idt_ticks"]
        alone = ideal_mb_per_s(idt)
        return {
            "alone": flows(alone, 0.0),
            "found": flows(kept * alone, out[idt]),
            "outgoing_idt_ticks": 100,
            "trials": 2,
        }

    return answer


def test_incoming_rate_judges_the_curve():
    idts = ("idt_ticks=[96, 250, 500]",)
    assert judge("incoming-rate", incoming({96: 20, 250: 55, 500: 65}), idts) == (
        [None, None, True],
        [True] * 4,
    )
    assert judge("incoming-rate", incoming({96: 20, 250: 55, 500: 70}), idts)[0] == [None, None, False]
    constant = {idt: 90 - ideal_mb_per_s(idt) for idt in (96, 250, 500)}
    assert judge("incoming-rate", incoming(constant), idts)[1][2] is False
    assert judge("incoming-rate", incoming({96: 20, 250: 66, 500: 65}), idts)[1][1] is False
    assert judge("incoming-rate", incoming({96: 1, 250: 45, 500: 75}), idts)[1][3] is False
    assert judge("incoming-rate", incoming({96: 20, 250: 55, 500: 65}, kept=0.98), idts)[1][0] is False


@given(limit=st.integers(0, MAX_IDT_TICKS), step=st.integers(1, 128))
def test_the_search_finds_the_smallest_harmless_idt(limit, step):
    tried = []

    async def harmless(idt: int) -> bool:
        tried.append(idt)
        # An IDT below T is none: the flow goes at its peak.
        return (idt if idt >= T_TICKS else 0) >= limit

    found = asyncio.run(smallest_harmless(harmless, step_ticks=step))
    assert found in tried and len(tried) == len(set(tried))
    if limit == 0:
        assert found == 0 and tried == [0]
    else:
        assert max(limit, T_TICKS) <= found
        assert found <= max(limit, T_TICKS) + step or found == MAX_IDT_TICKS


def test_the_search_says_when_nothing_is_harmless():
    async def never(idt: int) -> bool:
        return False

    with pytest.raises(ValueError, match="even an IDT of 2000 ticks slows flow 1"):
        asyncio.run(smallest_harmless(never, step_ticks=8))


def overhead(changes: dict[str, tuple[float, float]]):
    """A measurement of rate-overhead: factors on the cycles of round trips and of the transfer, by program."""

    def answer(point):
        trips, transfer = changes.get(point.parameters["program"], (1.0, 1.0))
        length = point.parameters["message_bytes"]
        return {
            "round_trips_cycles": round((20_000 + length) * trips),
            "transfer_cycles": round((20_000 + 40 * length) * transfer),
            "clock_hz": CLOCK_HZ,
        }

    return answer


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, {3}),  # nowhere is the rate-controlled one the faster
        ({"rate-controlled": (0.999, 1.0)}, set()),
        ({"rate-controlled": (1.02, 1.0)}, {0, 3}),
        ({"rate-controlled": (0.999, 1.02)}, {1}),
        ({"rate-controlled": (0.999, 1.05)}, {1, 2}),
        ({"equal packets": (1.0005, 1.0)}, {3, 4}),
        ({"equal packets": (1.0, 1.0005)}, {3, 4}),
    ],
)
def test_rate_overhead_judges_means_worst_and_every_cycle(changes, broken):
    claims = judge("rate-overhead", overhead(changes))[1]
    assert claims == [number not in broken for number in range(5)] + [None]


def test_rate_overhead_tells_sizes_beside_the_range_from_it():
    slow = overhead({"rate-controlled": (1.3, 1.3)})
    fast = overhead({"rate-controlled": (0.999, 1.0)})
    beside = lambda point: (fast if point.parameters["in_range"] else slow)(point)  # noqa: E731
    assert judge("rate-overhead", beside)[1] == [True] * 5 + [None]
    # Sizes that the user names are no range: what is left are the unit, and messages that are cut unlike.
    assert judge("rate-overhead", slow, ("message_bytes=[8]",))[1] == [None, None, None, None, True]
    assert judge("rate-overhead", slow, ("message_bytes=[4100]",))[1] == [None, None, None, False, True]
    assert len(judge("rate-overhead", fast, ("message_bytes=[8]",))[0]) == len(PROGRAMS)


def test_the_range_of_rate_overhead_has_one_ratio_and_the_thesis_longest_message():
    for size, ratio, sizes in (("full", 2**0.5, 29), ("quick", 2**1.5, 10)):
        range_ = RANGE[size]
        assert range_[0] == 4 and len(range_) == sizes
        assert all(b / a == pytest.approx(ratio, rel=0.1) for a, b in pairwise(range_))
    assert RANGE["full"][-1] == 65536 and set(RANGE["quick"]) <= set(RANGE["full"])


def test_fair_queueing_judges_both_disciplines():
    def served(message: list[int], packet: list[int]):
        def answer(point):
            counts = message if point.parameters["discipline"] == "message" else packet
            return {
                "payload_bytes": [4096 * one for one in counts],
                "window_cycles": 100_000,
                "clock_hz": CLOCK_HZ,
                "order": "AB",
            }

        return answer

    assert judge("fair-queueing", served([90, 30], [60, 60])) == ([True, True, None], [True] * 3)
    assert judge("fair-queueing", served([60, 60], [60, 60])) == ([False, True, None], [False, True, True])
    assert judge("fair-queueing", served([90, 30], [62, 58])) == ([True, False, None], [True, False, False])
    unpublished = ("message_packets=[2, 1, 1]",)
    assert judge("fair-queueing", served([60, 30, 30], [40, 40, 40]), unpublished) == ([None] * 3, [True] * 3)


def test_fair_queueing_measures_whole_rounds():
    experiment = find("fair-queueing")
    for point in experiment.points(parse(experiment, ["message_packets=[5, 2]"]), "quick"):
        in_round = 7 if point.parameters["discipline"] == "message" else 2
        assert point.spec["window_packets"] % in_round == point.spec["warm_up_packets"] % in_round == 0


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("share-receiver", "idt_over_T=[[2, 2, 2, 2]]", "idt_over_T[0] has 4 flows: a setting has 1 to 3"),
        ("share-receiver", "idt_over_T=[[100]]", "idt_over_T[0][0] = 100: an IDT is 1 to 2000 ticks"),
        ("share-bidir", "out_idt_ticks=[]", "out_idt_ticks = []"),
        ("share-bidir", "in_idt_ticks=0", "in_idt_ticks = 0"),
        ("idt-sweep", "idt_ticks=[-1]", "idt_ticks.0 = -1"),
        ("idt-sweep", "message_bytes=1000", "message_bytes = 1000"),
        ("incoming-rate", "idt_ticks=[2001]", "idt_ticks.0 = 2001"),
        ("rate-table", "ticks_per_T=1", "ticks_per_T = 1"),
        ("rate-table", "idt_over_T=[0]", "idt_over_T.0 = 0"),
        ("rate-overhead", "message_bytes=[0]", "message_bytes.0 = 0"),
        ("fair-queueing", "message_packets=[3]", "message_packets = [3]"),
        ("wormhole-unfairness", "demand=0.1", "demand = 0.1"),
        ("wormhole-unfairness", "link_mbit_per_s=4000", "link_mbit_per_s = 4000"),
    ],
)
def test_a_bad_setting_is_refused(name, setting, message):
    with pytest.raises(UserError) as caught:
        parse(find(name), [setting])
    assert message in str(caught.value) and "\n" not in str(caught.value)
