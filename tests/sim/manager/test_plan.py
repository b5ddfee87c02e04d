"""Reservations tried before there is a cluster: refused where managers refuse them, with the sum and the limit."""

from __future__ import annotations

import random

import pytest
from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.bandwidth.errors import RefusedError
from lanikai.sim.errors import UserError
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.plan import Planned, check_plan
from support.sim.fake_gm import FakeCluster

NIC = preset(NicConfig, "lanai4")
SEED = 20261128


@pytest.mark.parametrize("chained", [False, True])
def test_managers_refuse_what_a_plan_refuses_and_where(chained, record_property) -> None:
    record_property("seed", SEED)
    print(f"seed {SEED}")
    pick = random.Random(SEED)
    refused = []
    for _ in range(12):
        cluster = FakeCluster(chained=chained, receive_mb_per_s=None)
        flows = [FlowId(a, 0, b, 0) for a in range(4) for b in range(4) if a != b]
        plan = [
            Planned(
                name=f"request {number}",
                flow=flow,
                mb_per_s=round(pick.uniform(0.2, 60), 3),
                message_bytes=pick.choice([None, 9000, 70_000]),
            )
            for number, flow in enumerate(pick.sample(flows, len(flows)))
        ]
        plan = [one for one in plan if one.message_bytes is None or one.mb_per_s < 40]

        async def main(cluster: FakeCluster, plan: list[Planned] = plan) -> None:
            clients = {node: await cluster.client(node) for node in range(4)}
            for number, one in enumerate(plan):
                flow, config = one.flow, ManagerConfig(receive_mb_per_s=None)
                try:
                    await clients[flow.source].request(
                        flow.target, 0, one.mb_per_s, message_bytes=one.message_bytes
                    )
                except RefusedError as error:
                    with pytest.raises(UserError) as caught:
                        check_plan(plan[: number + 1], network=cluster.network, nic=NIC, config=config)
                    assert str(caught.value).startswith(f"{one.name}: ")
                    assert f"are refused: {error.where} would " in str(caught.value)
                    refused.append(error.where)
                    return
                check_plan(plan[: number + 1], network=cluster.network, nic=NIC, config=config)

        cluster.run(main)
    assert len(refused) >= 8 and len(set(refused)) > 1


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (
            [(0, 1, 50.0), (0, 2, 30.0)],
            "b: 30 MB/s are refused: node 0 would send 80.0 MB/s with it, and may 78.0",
        ),
        (
            [(0, 1, 60.0), (2, 1, 55.0)],
            "b: 55 MB/s are refused: node 1 would receive 115.0 MB/s with it, and may 113.1",
        ),
        ([(0, 1, 90.0)], "a: a request of 90.0 MB/s: above 0 (at least 8e-06) and at most 85.333"),
    ],
)
def test_a_refusal_names_place_sum_and_limit(requests, message) -> None:
    plan = [
        Planned(name="ab"[number], flow=FlowId(source, 0, target, 0), mb_per_s=rate)
        for number, (source, target, rate) in enumerate(requests)
    ]
    with pytest.raises(UserError) as caught:
        check_plan(plan, network=FakeCluster().network, nic=NIC)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_short_packets_are_said_to_count_as_full_ones() -> None:
    plan = [Planned(name="film", flow=FlowId(0, 0, 1, 0), mb_per_s=8.0, message_bytes=634)] * 2
    plan[1] = Planned(name="other", flow=FlowId(0, 0, 2, 0), mb_per_s=6.0, message_bytes=634)
    check_plan(plan[:1], network=FakeCluster().network, nic=NIC, by_bytes=True)
    with pytest.raises(UserError) as caught:
        check_plan(plan, network=FakeCluster().network, nic=NIC, by_bytes=True)
    assert str(caught.value) == (
        "other: 6 MB/s, which count as 44.8, a packet as a full one, are refused: node 0 would send 104.5 MB/s with "
        "it, and may 78.0"
    )
