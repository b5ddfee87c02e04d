"""goal-replay: a GOAL schedule (LogGOPSim) played by MPI ranks on the cluster.

Ranks take the nodes in turn. Each message holds data that its receiver checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, model_validator

from ...inputs.goal import GOAL_EXAMPLE, Schedule, read_goal
from ...units import microseconds
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..measure.gm_hosts import NODES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["GoalReplay", "GoalReplayParameters"]


class GoalReplayParameters(Config):
    """Parameters of goal-replay."""

    file: Path | None = Field(
        None,
        description="the schedule, in GOAL's text form; null: an example of 4 ranks",
        json_schema_extra={"range": "path of a file"},
    )
    calc_scale: float = Field(1.0, ge=0, le=1000, description="computing takes so many times what is written")

    @model_validator(mode="after")
    def _check(self) -> Self:
        read_goal(self.path)  # a bad file is refused here, before anything is built
        return self

    @property
    def path(self) -> Path:
        """The schedule's file."""
        return self.file or GOAL_EXAMPLE


class GoalReplay(Experiment):
    """A GOAL schedule on MPI."""

    name = "goal-replay"
    asks = "How long does a schedule of messages and computing take on the cluster?"
    source = "Hoefler, Siebert, Lumsdaine, Group Operation Assembly Language, 2009"
    entry = "lanikai.sim.experiments.workloads.goal:measure"
    Parameters = GoalReplayParameters
    by_flow = ("rank_*",)
    element = "rank"

    def points(self, parameters: GoalReplayParameters, size: Size) -> list[Point]:
        """One point."""
        schedule = read_goal(parameters.path)
        return [
            Point(
                label=parameters.path.name,
                parameters={
                    "file": parameters.path.name,
                    "calc_scale": parameters.calc_scale,
                    "ranks": len(schedule.ranks),
                },
                spec={"file": str(parameters.path.resolve()), "calc_scale": parameters.calc_scale},
            )
        ]

    def cluster(self, parameters: GoalReplayParameters) -> Any:
        """The cluster that MPI's other experiments have."""
        from ..measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(
        self, parameters: GoalReplayParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Time of the schedule, and of each rank (names that begin with `rank_`)."""
        hz, ranks = measured["clock_hz"], measured["ranks"]
        return {
            "schedule_us": max(microseconds(one["cycles"], hz) for one in ranks),
            "messages": sum(one["messages"] for one in ranks),
            "message_bytes": sum(one["received_bytes"] for one in ranks),
            "scheduled_messages": measured["scheduled_messages"],
            "longest_computing_us": measured["longest_computing_us"],
            "rank_us": [microseconds(one["cycles"], hz) for one in ranks],
            "rank_computing_us": [microseconds(one["computing_cycles"], hz) for one in ranks],
            "rank_received_bytes": [one["received_bytes"] for one in ranks],
        }

    def claims(self, parameters: GoalReplayParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Every message has arrived as it was sent, and computing takes its time."""
        found = [one.results for one in outcomes]
        return [
            Claim.every(
                "every message has arrived as it was sent",
                (one["messages"] == one["scheduled_messages"] for one in found),
            ),
            Claim.every(
                "the schedule takes no less than the computing of any rank",
                (one["schedule_us"] >= one["longest_computing_us"] for one in found),
            ),
        ]

    def plot(self, parameters: GoalReplayParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw the time of each rank, and of it that of computing."""
        axes = figure.add_subplot()
        for one in outcomes:
            ranks = range(len(one.results["rank_us"]))
            axes.bar(ranks, one.results["rank_us"], label="until its last operation ended")
            axes.bar(ranks, one.results["rank_computing_us"], label="of it, computing")
            axes.set_xticks(list(ranks))
        axes.set_xlabel("rank")
        axes.set_ylabel("time (µs)")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
        axes.set_title(f"{parameters.path.name} on {NODES} nodes")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from ...host.mpi.goal import play_goal
    from ...host.mpi.world import run_ranks
    from ..measure.hosts import open_programs, start_hosts

    schedule = read_goal(Path(spec["file"]))
    hosts = start_hosts(cluster, "mpi")
    nodes = [rank % len(hosts) for rank in range(len(schedule.ranks))]
    worlds = await open_programs(cluster, "mpi", hosts, nodes)
    total, done = sum(map(len, schedule.ranks)), 0

    def count() -> None:
        nonlocal done
        done += 1
        cluster.progress(done / total, f"{done} of {total} operations")

    played = await run_ranks(
        cluster.clock,
        worlds,
        lambda world: play_goal(world, schedule.ranks[world.rank], calc_scale=spec["calc_scale"], done=count),
    )
    return {
        "ranks": [vars(one) for one in played],
        "scheduled_messages": schedule.messages,
        "longest_computing_us": longest_computing_ns(schedule) * spec["calc_scale"] / 1000,
        "clock_hz": cluster.config.nic.clock_hz,
    }


def longest_computing_ns(schedule: Schedule) -> int:
    """The computing of the rank that has most of it, ns."""
    return max(sum(one.amount for one in rank if one.kind == "calc") for rank in schedule.ranks)
