"""Credits of a host: policies, gates, shares. No simulator."""

import random
from collections import Counter, defaultdict

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.host.hca.credit import CREDITS, DroppingGate, WaitingGate, find_credits, initial_credits
from support.formal.harness import mutate

SIDE = 4
MESH = [(node % SIDE, node // SIDE) for node in range(SIDE * SIDE)]
SEED = 1


@pytest.mark.parametrize("name", CREDITS)
@pytest.mark.parametrize("node", [0, 5, 15])
def test_credits_are_dealt_out_and_come_back_to_their_queue(name, node):
    policy = find_credits(name)(47, node=node, coordinates=MESH)
    others = [other for other in range(16) if other != node]
    assert sum(policy.initial) == 47
    assert max(policy.initial) - min(policy.initial) <= 1
    assert {policy.queue(other) for other in others} == set(range(len(policy.initial)))
    for other in others:
        queue = policy.queue(other)
        assert policy.take(other)
        assert policy.left[queue] == policy.initial[queue] - 1
        assert policy.give(other) == queue
    assert policy.taken == 0
    with pytest.raises(ValueError, match="a credit came back that no message"):
        policy.give(others[0])


@pytest.mark.parametrize(("name", "queues"), [("global", 1), ("separate", 15), ("quadrant", 4)])
def test_an_empty_queue_lets_nothing_by_and_others_go_on(name, queues):
    policy = find_credits(name)(queues, node=5, coordinates=MESH)
    assert policy.take(6)
    others = [node for node in range(16) if node != 5]
    same = [node for node in others if policy.queue(node) == policy.queue(6)]
    assert not any(policy.take(node) for node in same)
    elsewhere = Counter(policy.queue(node) for node in others if policy.take(node))
    assert len(elsewhere) == queues - 1
    assert policy.taken == queues


def test_without_control_no_credit_is_missing():
    policy = find_credits("none")(0, node=0, coordinates=MESH)
    assert all(policy.take(1) for _ in range(1000))
    assert policy.taken == 1000


def test_quadrants_are_those_of_minimal_routes():
    """The four of a node in the middle are equally large up to the mesh's own odd size, and each is a quarter turn of
    the next."""
    side = 5
    mesh = [(node % side, node // side) for node in range(side * side)]
    middle = 12
    policy = find_credits("quadrant")(8, node=middle, coordinates=mesh)
    found = defaultdict(set)
    for node in range(side * side):
        if node != middle:
            x, y = mesh[node]
            found[policy.queue(node)].add((x - 2, y - 2))
    assert [len(one) for one in found.values()] == [6] * 4
    sets = list(found.values())
    turned = [{(-y, x) for x, y in one} for one in sets]
    assert all(one in sets for one in turned)
    for one in sets:
        assert {x > 0 for x, y in one if x} != {True, False} or {y > 0 for x, y in one if y} != {True, False}


def test_a_corner_has_the_quadrants_that_it_reaches():
    policy = find_credits("quadrant")(9, node=0, coordinates=MESH)
    assert sum(policy.initial) == 9
    assert len(policy.initial) == 2


@pytest.mark.parametrize("name", ["none", "global", "separate", "quadrant"])
def test_messages_wait_in_order_of_their_queue_and_none_is_lost(name):
    chance = random.Random(SEED)
    gate = WaitingGate(find_credits(name)(20, node=5, coordinates=MESH))
    posted, at_adapter, offered = [], [], []
    for number in range(2000):
        if chance.random() < 0.55:
            destination = chance.choice([node for node in range(16) if node != 5])
            offered.append((destination, number))
            if gate.offer(destination, (destination, number)):
                posted.append((destination, number))
                at_adapter.append(destination)
        elif at_adapter:
            message = gate.credit(at_adapter.pop(chance.randrange(len(at_adapter))))
            if message is not None:
                posted.append(message)
                at_adapter.append(message[0])
        assert gate.policy.taken == len(at_adapter)
        assert gate.waiting == len(offered) - len(posted)
        if name != "none":
            assert len(at_adapter) <= 20
            assert min(gate.policy.left) >= 0
    assert gate.waiting > 10 or name == "none"
    while at_adapter:
        message = gate.credit(at_adapter.pop())
        if message is not None:
            posted.append(message)
            at_adapter.append(message[0])
    assert sorted(posted) == sorted(offered)
    by_queue = defaultdict(list)
    for destination, number in posted:
        by_queue[gate.policy.queue(destination)].append(number)
    assert all(numbers == sorted(numbers) for numbers in by_queue.values())


def test_real_time_messages_without_a_credit_are_dropped():
    gate = DroppingGate(find_credits("global")(2, node=0, coordinates=MESH))
    assert [gate.offer(1, None) for _ in range(4)] == [True, True, False, False]
    assert gate.dropped == 2
    gate.credit(1)
    assert [gate.offer(1, None) for _ in range(2)] == [True, False]


def test_initial_credits_follow_bandwidth():
    assert initial_credits(buffer_messages=400, link_bandwidth=1600, bandwidths=[4, 40, 400, 1]) == (
        [1, 10, 100, 1],
        288,
    )
    assert initial_credits(buffer_messages=10, link_bandwidth=7, bandwidths=[], best_effort=3) == ([], 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buffer_messages": 0}, "buffer_messages = 0: at least 1"),
        ({"bandwidths": [60, 60]}, "bandwidths: 120 in all: above 0, and at most the link's 100"),
        (
            {"bandwidths": [1] * 12},
            "bandwidths: 12 connections take 12 credits: at most 10 messages fit into the adapter",
        ),
        ({"bandwidths": [50], "best_effort": 6}, "best_effort = 6: 0 to 5, as connections leave it"),
    ],
)
def test_credits_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        initial_credits(**{"buffer_messages": 10, "link_bandwidth": 100, "bandwidths": []} | changes)
    assert str(error.value) == message


def test_a_policy_that_is_not_there_or_has_too_few_credits_is_refused():
    with pytest.raises(ConfigError, match=r"^unknown policy of credits 'x'; valid policies: none, global, "):
        find_credits("x")
    with pytest.raises(ConfigError, match=r"^credits = 14: at least 15, one for each queue of credits$"):
        find_credits("separate")(14, node=0, coordinates=MESH)
    with pytest.raises(ConfigError, match=r"^node = 16: 0 to 15$"):
        find_credits("global")(14, node=16, coordinates=MESH)
    with pytest.raises(ValueError, match=r"^destination = 3: another node than the own one$"):
        find_credits("quadrant")(14, node=3, coordinates=MESH).queue(3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        queue.append((destination, message))\n", ""),
        ("queue.popleft()", "queue.pop()"),
        ("        self.policy.take(to)\n", ""),
    ],
)
def test_a_mutant_of_the_gate_is_caught(monkeypatch, old, new):
    monkeypatch.setitem(globals(), "WaitingGate", mutate(WaitingGate, old, new))
    with pytest.raises((AssertionError, ValueError)):
        test_messages_wait_in_order_of_their_queue_and_none_is_lost("quadrant")
