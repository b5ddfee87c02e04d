"""The claims of cosched: orderings that nagar-thesis-2001 6.2 states in words, and two of our own.

A claim is judged on the workloads and strategies that were run. Margins are fixed here, before any run:

- "better" and "worse" are of the completion times, without a margin.
- "negligible": the slowest takes at most 25% longer than the fastest. Published are 101 to 125 s.
- "similar": within 20%.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from ...published import table
from ..framework.base import Claim, Outcome

__all__ = ["claims", "rank_correlation"]

TEN = ("local", "sb", "dcs", "dcs_sb", "pb", "pbt", "pb_sb", "sy", "dcs_sy", "pb_sy")
"""The strategies of the thesis."""
LEAST_CORRELATION = 0.7
SAME_ORDER = 0.9
"""Rank correlation of the completion times at two scales."""
NEGLIGIBLE = 1.25
SIMILAR = 1.2
FAIR = 0.8
"""Smallest by largest share of the processors."""
LATENCY = 1.1
"""Latency under a strategy, by that under Local."""
ORDER_OF_MAGNITUDE = 3.0
"""Published factors over Local above which they have to be reached."""

Row = Mapping[str, float]


class _Rows:
    """A result of the workloads at the largest scale, or at the others: {workload: {strategy: value}}."""

    def __init__(
        self, outcomes: Sequence[Outcome], name: str = "completion_s", *, others: bool = False
    ) -> None:
        found = [one for one in outcomes if one.point.parameters["workload"]]
        largest = max((one.point.parameters["scale"] for one in found), default=0.0)
        self.rows: dict[int, dict[str, float]] = {}
        for one in found:
            its = one.point.parameters
            if (its["scale"] < largest) is others:
                self.rows.setdefault(its["workload"], {})[its["strategy"]] = one.results[name]

    def each(
        self, needs: Sequence[str], workloads: Sequence[int], judge: Callable[[Row], bool]
    ) -> Iterator[bool]:
        """The verdict on each of the workloads that has all strategies that it needs."""
        for number in workloads:
            row = self.rows.get(number, {})
            if row.keys() >= set(needs):
                yield judge(row)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation: that of the ranks, equal values having the mean of theirs."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [
            sum(value < mine for value in values) + (sum(value == mine for value in values) - 1) / 2
            for mine in values
        ]

    first, second = ranks(one), ranks(other)
    middle = (len(one) - 1) / 2
    product = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    squares = [sum((a - middle) ** 2 for a in some) for some in (first, second)]
    whole = (squares[0] * squares[1]) ** 0.5
    return product / whole if whole else 0.0


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """All claims, on all outcomes."""
    times = _Rows(outcomes)
    return [
        *_as_published(times),
        *_low_and_high(times),
        *_boosts(times),
        *_other_programs(times),
        *_fairness(outcomes),
        *_beside(outcomes, times),
    ]


def _as_published(times: _Rows) -> Iterator[Claim]:
    published = table("cosched")["completion_s"]
    for number in range(1, 13):

        def correlates(row: Row, number: int = number) -> bool:
            there = [published[name][number - 1] for name in TEN]
            return rank_correlation([row[name] for name in TEN], there) >= LEAST_CORRELATION

        yield Claim.every(
            f"workload {number}: the completion times of the ten strategies have a rank correlation of at least 0.7 "
            "with the published ones",
            times.each(TEN, (number,), correlates),
        )

    def factors(number: int) -> list[tuple[str, float]]:
        there = [
            (name, published["local"][number - 1] / published[name][number - 1]) for name in ("pb", "pbt")
        ]
        return [(name, factor) for name, factor in there if factor > ORDER_OF_MAGNITUDE]

    yield Claim.every(
        "where PB and PBT beat Local by more than a factor of 3 in the thesis, they do so by at least as much",
        (
            row["local"] / row[name] >= factor
            for number, row in times.rows.items()
            for name, factor in factors(number)
            if row.keys() >= {"local", name}
        ),
    )


def _low_and_high(times: _Rows) -> Iterator[Claim]:
    """Table 6.4: from little to much communication."""
    few, many, all_five = (1, 2), (3, 4, 5), (1, 2, 3, 4, 5)
    local = [times.rows[number]["local"] for number in all_five if "local" in times.rows.get(number, {})]
    yield Claim.every(
        "the slowdown of Local increases as the workload becomes more communication intensive (1 to 5)",
        (one < other for one, other in pairwise(local)),
    )
    yield Claim.every(
        "SB does better than DCS and DCS-SB for workloads with lower communication (1 and 2)",
        times.each(("sb", "dcs", "dcs_sb"), few, lambda row: row["sb"] < min(row["dcs"], row["dcs_sb"])),
    )
    yield Claim.every(
        "SB does worse than DCS and DCS-SB at higher communication intensities (3, 4 and 5)",
        times.each(("sb", "dcs", "dcs_sb"), many, lambda row: row["sb"] > max(row["dcs"], row["dcs_sb"])),
    )
    yield Claim.every(
        "DCS-SB performs even better than DCS (1 to 5)",
        times.each(("dcs", "dcs_sb"), all_five, lambda row: row["dcs_sb"] < row["dcs"]),
    )
    yield Claim.every(
        "SY does not perform as well as SB (1 to 5)",
        times.each(("sb", "sy"), all_five, lambda row: row["sy"] > row["sb"]),
    )
    yield Claim.every(
        "Spin Yield should not be used in isolation: DCS-SY and PB-SY are better than SY (3, 4 and 5)",
        times.each(("sy", "dcs_sy", "pb_sy"), many, lambda row: max(row["dcs_sy"], row["pb_sy"]) < row["sy"]),
    )
    yield Claim.every(
        "DCS-SY performs quite similar to DCS, with a small improvement at higher communication intensities (4 and 5)",
        times.each(("dcs", "dcs_sy"), (4, 5), lambda row: row["dcs"] / SIMILAR <= row["dcs_sy"] < row["dcs"]),
    )


def _boosts(times: _Rows) -> Iterator[Claim]:
    """Tables 6.4 and 6.6: the periodic boost."""
    all_five = (1, 2, 3, 4, 5)
    yield Claim.every(
        "PB outperforms almost all other strategies (1 to 5): it is one of the three fastest",
        times.each(TEN, all_five, lambda row: row["pb"] <= sorted(row[name] for name in TEN)[2]),
    )
    first, last = times.rows.get(1, {}), times.rows.get(5, {})
    others = [name for name in TEN if name not in ("pb", "pbt")]
    yield Claim.every(
        "the rate of increase of PB's slowdown from workload 1 to 5 is lower than those of all others but PBT",
        (
            last["pb"] / first["pb"] < last[name] / first[name]
            for name in others
            if {"pb", name} <= first.keys() & last.keys()
        ),
    )
    yield Claim.every(
        "adding SB to PB does not help (3, 4 and 5)",
        times.each(("pb", "pb_sb"), (3, 4, 5), lambda row: row["pb_sb"] >= row["pb"]),
    )
    yield Claim.every(
        "PBT performs worse than PB for all but the highest communication workload (1 to 4)",
        times.each(("pb", "pbt"), (1, 2, 3, 4), lambda row: row["pbt"] > row["pb"]),
    )
    yield Claim.every(
        "PBT performs better than PB for the highest communication workload (5)",
        times.each(("pb", "pbt"), (5,), lambda row: row["pbt"] < row["pb"]),
    )
    yield Claim.every(
        "PB does the best for workload 11",
        times.each(TEN, (11,), lambda row: row["pb"] <= min(row[name] for name in TEN)),
    )
    yield Claim.every(
        "PB-SY and DCS-SY are reasonable choices for workload 12: better than Local, SB and SY",
        times.each(
            ("local", "sb", "sy", "dcs_sy", "pb_sy"),
            (12,),
            lambda row: max(row["dcs_sy"], row["pb_sy"]) < min(row["local"], row["sb"], row["sy"]),
        ),
    )


def _other_programs(times: _Rows) -> Iterator[Claim]:
    """Table 6.5: mixtures of different programs."""
    yield Claim.every(
        "workload 6: the communication is so low that there is negligible difference between the strategies",
        times.each(
            TEN,
            (6,),
            lambda row: max(row[name] for name in TEN) <= NEGLIGIBLE * min(row[name] for name in TEN),
        ),
    )
    yield Claim.every(
        "PB and PBT outperform all other strategies where communication is high (9)",
        times.each(
            TEN,
            (9,),
            lambda row: (
                max(row["pb"], row["pbt"]) < min(row[name] for name in TEN if name not in ("pb", "pbt"))
            ),
        ),
    )
    yield Claim.every(
        "SB does not do as well as DCS and DCS-SB where communication is high (9)",
        times.each(("sb", "dcs", "dcs_sb"), (9,), lambda row: row["sb"] > max(row["dcs"], row["dcs_sb"])),
    )
    yield Claim.every(
        "Local is worse than every other strategy where jobs of different programs communicate (7, 8 and 9)",
        times.each(
            TEN, (7, 8, 9), lambda row: row["local"] > max(row[name] for name in TEN if name != "local")
        ),
    )


def _fairness(outcomes: Sequence[Outcome]) -> Iterator[Claim]:
    """Table 6.7 and figures 6.3 and 6.4."""
    variation, fairness = _Rows(outcomes, "cv"), _Rows(outcomes, "fairness")
    mean = _Rows(outcomes, "mean_s")
    five = ("sb", "dcs", "pb", "pbt", "pb_sy")
    yield Claim.every(
        "the four strategies other than PBT have a lower coefficient of variation than it (5)",
        variation.each(five, (5,), lambda row: row["pbt"] > max(row[name] for name in five if name != "pbt")),
    )
    yield Claim.every(
        "PB has a lower mean completion time than SB, DCS and PB-SY (5)",
        mean.each(five, (5,), lambda row: row["pb"] < min(row["sb"], row["dcs"], row["pb_sy"])),
    )
    yield Claim.every(
        "SB gives an equal share of the processor to the jobs (3)",
        fairness.each(("sb",), (3,), lambda row: row["sb"] >= FAIR),
    )
    yield Claim.every(
        "DCS gives an equal share of the processor to the jobs (3)",
        fairness.each(("dcs",), (3,), lambda row: row["dcs"] >= FAIR),
    )
    yield Claim.every(
        "the fairness of PB and PBT is below that of PB-SY (3)",
        fairness.each(("pb", "pbt", "pb_sy"), (3,), lambda row: max(row["pb"], row["pbt"]) < row["pb_sy"]),
    )


def _beside(outcomes: Sequence[Outcome], times: _Rows) -> Iterator[Claim]:
    """The ideal, our own strategy, latencies and scales."""
    yield Claim.every(
        "Local is slower than the ideal, gang scheduling, wherever there is communication",
        times.each(
            ("local", "gang"), (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12), lambda row: row["local"] > row["gang"]
        ),
    )
    yield Claim.every(
        "PBF is at least as fast as PB",
        times.each(("pb", "pbf"), range(1, 13), lambda row: row["pbf"] <= row["pb"] * 1.02),
    )
    fairness = _Rows(outcomes, "fairness")
    yield Claim.every(
        "PBF is fair: the smallest share of the processors is at least 0.8 of the largest (1 to 5)",
        fairness.each(("pbf",), (1, 2, 3, 4, 5), lambda row: row["pbf"] >= FAIR),
    )
    latency = {
        one.point.parameters["strategy"]: one.results["latency_us"]
        for one in outcomes
        if not one.point.parameters["workload"]
    }
    yield Claim.every(
        "the one-way latency is not significantly impacted by any strategy: at most 10% above that of Local",
        (
            latency["local"] > 0 and one <= LATENCY * latency["local"]
            for name, one in latency.items()
            if "local" in latency and name != "local"
        ),
    )
    smaller = _Rows(outcomes, others=True)
    yield Claim.every(
        "the order of the strategies does not depend on the scale: rank correlation of at least 0.9 between two",
        (
            rank_correlation([row[name] for name in TEN], [times.rows[number][name] for name in TEN])
            >= SAME_ORDER
            for number, row in smaller.rows.items()
            if row.keys() >= set(TEN) and times.rows.get(number, {}).keys() >= set(TEN)
        ),
        nothing="one scale was run",
    )
