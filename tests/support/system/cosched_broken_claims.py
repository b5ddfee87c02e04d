"""Broken claims of coscheduling: for each a mutant that makes it false."""

from __future__ import annotations

from .broken import Broken, place

__all__ = ["COSCHED_BROKEN"]

SMALL = "scale=0.01"
TEN = 'strategies=["local","sb","dcs","dcs_sb","pb","pbt","pb_sb","sy","dcs_sy","pb_sy"]'


def _only(workloads: str, *strategies: str, scale: str = SMALL) -> tuple[str, ...]:
    names = ",".join(f'"{one}"' for one in strategies)
    return (f"workloads=[{workloads}]", f"strategies=[{names}]" if names else TEN, scale, "scale_workload=0")


COSCHED_BROKEN = (
    Broken(
        experiment="cosched",
        mutant="nobody sends",
        settings=_only("1,5,9"),
        claims=(
            "the completion times of the ten strategies have a rank correlation of at least 0.7",
            "SB does worse than DCS and DCS-SB at higher",
            "SB does not do as well as DCS and DCS-SB where communication is high",
            "PB and PBT outperform all other strategies where communication is high",
            "Local is worse than every other strategy where jobs",
            "PB has a lower mean completion time",
            "Spin Yield should not be used in isolation",
        ),
    ),
    Broken(
        experiment="cosched",
        mutant="nobody sends",
        settings=_only("1,2,3,4,5", "local", "gang", scale="scale=0.2"),
        claims=("Local is slower than the ideal", "the slowdown of Local increases"),
    ),
    Broken(
        experiment="cosched",
        mutant="boosts do nothing",
        settings=_only("1,3,5"),
        claims=(
            "where PB and PBT beat Local by more than a factor of 3",
            "PBT performs better than PB for the highest",
            "PBT performs worse than PB for all but",
            "the rate of increase of PB's slowdown",
            "PB outperforms almost all other strategies",
            "adding SB to PB does not help",
            "the fairness of PB and PBT is below that of PB-SY",
        ),
    ),
    Broken(
        experiment="cosched",
        mutant="boosts do nothing",
        settings=_only("11"),
        claims=("PB does the best for workload 11",),
    ),
    Broken(
        experiment="cosched",
        mutant="all wait busily",
        settings=_only("1,3,4,5"),
        claims=(
            "SB does better than DCS and DCS-SB for workloads with lower communication",
            "DCS-SB performs even better than DCS",
            "SY does not perform as well as SB",
            "DCS-SY performs quite similar to DCS",
        ),
    ),
    Broken(
        experiment="cosched",
        mutant="blocked processes wake late",
        settings=_only("1,3,6", "sb", "dcs", "dcs_sb", "pb", "pbf", "pb_sb"),
        claims=(
            "SB does better than DCS and DCS-SB for workloads with lower communication",
            "PBF is at least as fast as PB",
        ),
    ),
    Broken(
        experiment="cosched",
        mutant="spinning costs nothing",
        settings=_only("3", "pb", "pb_sb", "local"),
        claims=("where PB and PBT beat Local by more than a factor of 3",),
    ),
    Broken(
        experiment="cosched",
        mutant="yielding costs much",
        settings=_only("12", "local", "sb", "sy", "dcs_sy", "pb_sy"),
        claims=("PB-SY and DCS-SY are reasonable choices for workload 12",),
    ),
    Broken(
        experiment="cosched",
        mutant="the first job has the nodes",
        settings=_only("3,5", "sb", "dcs", "pb", "pbt", "pb_sy"),
        claims=(
            "SB gives an equal share of the processor",
            "DCS gives an equal share of the processor",
            "the four strategies other than PBT have a lower coefficient",
        ),
    ),
    Broken(
        experiment="cosched",
        mutant="the first job has the nodes",
        settings=_only("6"),
        claims=("the communication is so low that there is negligible difference",),
    ),
    Broken(
        experiment="cosched",
        mutant="PBF boosts the first job",
        settings=_only("1,3", "pbf"),
        claims=("PBF is fair",),
    ),
    Broken(
        experiment="cosched",
        mutant="asking who runs is slow",
        settings=_only("12", "local", "dcs"),
        keep=place("workload", 0),
        claims=("the one-way latency is not significantly impacted",),
    ),
    Broken(
        experiment="cosched",
        mutant="short jobs are not boosted",
        settings=("workloads=[12]", TEN, SMALL),
        claims=("the order of the strategies does not depend on the scale",),
    ),
)
