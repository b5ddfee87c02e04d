"""The stages of messages on small cards, design by design, through VIPL."""

import pytest
from lanikai.sim.experiments.via.timeline import lanes, overlapping, spared
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS
from support.system.via_clusters import BASE, QUEUED, TWO

pytestmark = [pytest.mark.xdist_group("owners"), pytest.mark.full]
ONE = OWNERS.replace(firmware="via")


@pytest.mark.parametrize(
    ("design", "config", "sent"),
    [
        ("Base", BASE, 0),
        ("Base+O", BASE, 0),
        ("Base+O+DMAQ", QUEUED, 0),
        ("Door+O+DMAQ", ONE, 0),
        ("Door+O+DMAQ tailgating", ONE, 0.5),
        ("Door+O+DMAQ+2CPU shadow queues", TWO, 1),
    ],
)
def test_stages_come_in_their_order_and_overlap_but_in_base(design, config, sent, tmp_path):
    spec = {"design": design, "burst": 2, "vis": 1, "rounds": 2, "message_bytes": 64}
    job = config.job("lanikai.sim.experiments.via.anatomy:measure", spec)
    series = run(config.build(), *job, out_dir=tmp_path, seed=1).value["series"]
    messages = series["messages"]
    assert [one["receive"] for one in messages] == [False] * 4 + [True] * 4
    assert spared([one for one in messages if not one["receive"]]) == sent
    assert (overlapping(messages) == 0) == (design == "Base")
    for one in messages:
        ends = [over for stage, _, over in sorted(one["spans"]) if stage > 2]
        assert ends == sorted(ends) and all(begin <= over for _, begin, over in one["spans"])
        assert {stage for stage, *_ in one["spans"]} >= {5, 6, 9, 10, 11, 12} | (
            {7, 8} if not one["receive"] else set()
        )
    assert all(lanes(series).values())
