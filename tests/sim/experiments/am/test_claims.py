"""Claims of the experiments of chun-1998 on made-up results: they hold of what was published, and each can fail."""

from __future__ import annotations

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.am.bandwidth import PEAKS
from lanikai.sim.experiments.am.contention import slope
from lanikai.sim.experiments.am.logp import published_us
from lanikai.sim.experiments.am.permutations import partners
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import EXPERIMENTS

from .stand_in import failing, judged, outcomes

LOGP, BANDWIDTH = EXPERIMENTS["am-logp"], EXPERIMENTS["am-bandwidth"]
PERMUTATIONS, CONTENTION = EXPERIMENTS["am-permutations"], EXPERIMENTS["am-contention"]
NETWORKS = EXPERIMENTS["am-virtual-networks"]


def logp(**changes):
    """Published LogP parameters; `changes` are added to those of the whole program."""

    def results(where):
        found = {"o_send_us": 4.09, "o_recv_us": 4.28} | published_us(where["layer"])
        if where["layer"] == "protection":
            found = {key: value + changes.get(key, 0.0) for key, value in found.items()}
        return found

    return outcomes(LOGP, "quick", results)


def test_parts_of_the_breakdown_add_up():
    assert published_us("baseline") == {"gap_us": 9.6, "latency_us": 10.36, "rtt_us": 37.45}
    assert published_us("reliability") == {"gap_us": 14.93, "latency_us": 11.48, "rtt_us": 39.73}
    assert published_us("protection")["gap_us"] == pytest.approx(9.6 + 5.33 + 1.05)
    assert published_us("protection")["rtt_us"] == pytest.approx(37.45 + 2.28 + 2.21)


def test_logp_of_what_was_published_holds_and_each_claim_can_fail():
    assert failing(LOGP, logp()) == [] and all(judged(LOGP, logp()))
    assert all(one.within for one in logp())
    assert failing(LOGP, logp(gap_us=0.2)) == ["protection adds 1.05 us to gap, within 10%"]
    assert failing(LOGP, logp(latency_us=-0.2)) == ["protection adds 1.12 us to latency, within 10%"]
    assert [one[:34] for one in failing(LOGP, logp(gap_us=-8))][-1] == "the firmware limits the rate of sh"
    assert len(failing(LOGP, logp(rtt_us=5))) == 2
    assert [one.within for one in logp(rtt_us=5)] == [True, True, False]


def test_logp_with_other_credits_is_not_judged():
    parameters = LOGP.Parameters(credits=1)
    claims = LOGP.claims(parameters, logp())
    assert {claim.holds for claim in claims} == {None}
    assert all(point.published is None for point in LOGP.points(parameters, "quick"))


def bandwidth(**changes):
    """A figure 6: consistent buffers first, then streaming ones. `changes`: of "way_bytes"."""
    table = {
        "consistent": dict(zip((128, 512, 1024, 2048, 4096, 8192), (3, 9, 14, 18, 21, 23), strict=True)),
        "streaming": dict(zip((128, 512, 1024, 2048, 4096, 8192), (2, 8, 15, 24, 31, 34), strict=True)),
    }

    def results(where):
        key = f"{where['buffers']}_{where['message_bytes']}"
        return {"bandwidth_mb_per_s": changes.get(key, table[where["buffers"]][where["message_bytes"]])}

    return outcomes(BANDWIDTH, "quick", results)


def test_bandwidth_of_figure_6_holds_and_each_claim_can_fail():
    assert failing(BANDWIDTH, bandwidth()) == [] and all(judged(BANDWIDTH, bandwidth()))
    named = {
        (one.point.parameters["buffers"], one.point.parameters["message_bytes"]): one.within
        for one in bandwidth()
    }
    assert {key: within for key, within in named.items() if within is not None} == dict.fromkeys(PEAKS, True)
    assert failing(BANDWIDTH, bandwidth(streaming_128=4)) == [
        "small transfers are faster with consistent buffers"
    ]
    assert "large transfers are faster with streaming buffers" in failing(
        BANDWIDTH, bandwidth(streaming_4096=20)
    )
    assert "bandwidth grows with the size of the messages" in failing(BANDWIDTH, bandwidth(consistent_1024=5))
    assert [one[:31] for one in failing(BANDWIDTH, bandwidth(streaming_8192=40))] == [
        "messages that are moved whole d"
    ]
    assert not all(one.within for one in bandwidth(consistent_8192=26) if one.within is not None)


def test_partners_of_permutations():
    assert partners("cshift", 4) == [1, 2, 3, 0]
    assert partners("neighbor", 4) == [1, 0, 3, 2]
    assert partners("bisection", 92)[:2] == [46, 47] and partners("bisection", 92)[46] == 0
    for pattern in ("cshift", "neighbor", "bisection"):
        assert sorted(partners(pattern, 12)) == list(range(12))


def permutations(size, **changes):
    rows = {"cshift": (30.5, 48.0), "neighbor": (30.97, 47.5), "bisection": (5.65, 50.8)}

    def results(where):
        rate, trip = rows[where["pattern"]]
        found = {"bandwidth_mb_per_s": rate, "aggregate_gb_per_s": rate * 92 / 1000, "rtt_us": trip}
        return found | changes.get(where["pattern"], {})

    return outcomes(PERMUTATIONS, size, results)


def test_permutations_of_table_1_hold_and_each_claim_can_fail():
    full = permutations("full")
    assert failing(PERMUTATIONS, full) == [] and all(judged(PERMUTATIONS, full))
    assert [one.within for one in full] == [None, True, True]
    assert [one.within for one in permutations("quick")] == [None] * 3
    assert judged(PERMUTATIONS, permutations("quick")) == [True, True, False, True]
    assert len(failing(PERMUTATIONS, permutations("full", cshift={"bandwidth_mb_per_s": 20}))) == 1
    assert len(failing(PERMUTATIONS, permutations("full", cshift={"rtt_us": 60}))) == 1
    slow = permutations("full", bisection={"bandwidth_mb_per_s": 15})
    assert len(failing(PERMUTATIONS, slow)) == 1 and slow[2].within is False
    assert len(failing(PERMUTATIONS, permutations("full", bisection={"rtt_us": 60}))) == 1


def contention(change=lambda load, clients: {}):
    """A server that is busy from 4 clients on."""

    def results(where):
        load, count = where["load"], where["clients"]
        rate = 62_578.0 * min(1.0, count / 3)
        found = {
            "messages_per_s": rate,
            "mean_client_messages_per_s": rate / count - count,
            "least_share": 0.9,
            "rtt_us": max(42.0, 15.98 * count),
        }
        if load == "bulk":
            found["bandwidth_mb_per_s"] = 25 * min(1.0, count / 2)
        return found | change(load, count)

    return outcomes(CONTENTION, "quick", results)


@pytest.mark.parametrize(
    ("mutant", "text"),
    [
        (
            lambda load, n: {"messages_per_s": 40_000} if load == "rate" and n == 11 else {},
            "figure 7: the server's",
        ),
        (lambda load, n: {"messages_per_s": 50_000} if load == "rate" else {}, "figure 7: the peak"),
        (
            lambda load, n: {"bandwidth_mb_per_s": 10} if load == "bulk" and n == 8 else {},
            "figure 8: the server's",
        ),
        (lambda load, n: {"rtt_us": 20.0 * n} if load == "rtt" else {}, "figure 9: the slope"),
        (lambda load, n: {"least_share": 0.1} if n == 8 else {}, "no client starves"),
        (
            lambda load, n: {"mean_client_messages_per_s": 9e5} if load == "rate" and n == 4 else {},
            "figure 7: a client's",
        ),
        (
            lambda load, n: {"mean_client_messages_per_s": 9e5} if load == "bulk" and n == 4 else {},
            "figure 8: a client's",
        ),
    ],
)
def test_contention_holds_and_each_claim_can_fail(mutant, text):
    assert failing(CONTENTION, contention()) == [] and all(judged(CONTENTION, contention()))
    found = failing(CONTENTION, contention(mutant))
    assert len(found) == 1 and found[0].startswith(text)


def test_the_slope_is_that_of_least_squares():
    assert slope([(1, 3), (2, 5), (4, 9)]) == pytest.approx(2)
    assert slope([(1, 3)]) is None and slope([(1, 3), (1, 4)]) is None and slope([]) is None


def networks(change=lambda server, endpoints: {}):
    """Figures 10 and 11, with 2 frames."""

    def results(where):
        server, count, over = where["server"], where["endpoints"], where["endpoints"] > where["frames"]
        rate = 53_488.0 if server == "threads" else 20_000.0 if over else 60_000.0
        found = {
            "messages_per_s": rate,
            "mean_client_messages_per_s": rate / count,
            "least_share": 0.7 if over else 0.9,
            "most_share": 1.3 if over else 1.1,
            "loads": 100 if over else 0,
        }
        return found | change(server, count)

    return outcomes(NETWORKS, "quick", results)


@pytest.mark.parametrize(
    ("mutant", "text"),
    [
        (
            lambda s, n: {"messages_per_s": 50_000} if s == "one" and n == 1 else {},
            "one thread, an endpoint a frame",
        ),
        (lambda s, n: {"least_share": 0.8} if s == "one" and n == 2 else {}, "there each client's rate"),
        (lambda s, n: {"messages_per_s": 45_000} if s == "threads" else {}, "threads degrade the peak"),
        (
            lambda s, n: {"messages_per_s": 40_000} if s == "threads" and n == 24 else {},
            "with 12 times as many",
        ),
        (lambda s, n: {"most_share": 1.5} if s == "threads" and n == 24 else {}, "there clients are at most"),
        (lambda s, n: {"messages_per_s": 59_999} if s == "one" and n == 24 else {}, "one thread drops"),
        (lambda s, n: {"loads": 3} if s == "one" and n == 1 else {}, "endpoints move only"),
    ],
)
def test_networks_hold_and_each_claim_can_fail(mutant, text):
    assert failing(NETWORKS, networks()) == [] and all(judged(NETWORKS, networks()))
    found = failing(NETWORKS, networks(mutant))
    assert len(found) == 1 and found[0].startswith(text)


def test_a_client_that_starves_is_also_outside_of_the_spread():
    found = failing(
        NETWORKS, networks(lambda s, n: {"least_share": 0.1} if s == "threads" and n == 24 else {})
    )
    assert [one[:16] for one in found] == ["there clients ar", "no client starve"]


def test_an_unknown_policy_is_refused_before_anything_is_built():
    with pytest.raises(
        UserError, match="policy = 'mru': unknown policy 'mru'; valid policies: clock, lru, random"
    ):
        parse(NETWORKS, ["policy=mru"])
    assert parse(NETWORKS, ["policy=clock"]).policy == "clock"
