"""Admission of VIs with a rate: sums, refusals, renegotiation, and nothing left behind."""

from __future__ import annotations

import random

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.host.via.admission import (
    CardAdmission,
    Demand,
    Grant,
    MessageTime,
    Refusal,
    ViaCapacity,
    via_capacity,
    vtick,
)

CAPACITY = ViaCapacity(
    send=MessageTime(fixed_ns=10_000, byte_ps=10_000), receive=MessageTime(fixed_ns=5_000, byte_ps=5_000)
)
"""A message of 1000 bytes takes 20 us to send and 10 us to receive: 50 and 100 MB/s."""


def demand(send: float = 0, receive: float = 0, message: int = 1000) -> Demand:
    return Demand(
        send_bytes_per_s=int(send * 1e6), receive_bytes_per_s=int(receive * 1e6), message_bytes=message
    )


def test_a_card_promises_what_it_carries_and_no_byte_more():
    card = CardAdmission(capacity=CAPACITY, best_effort_part=0.2)
    assert card.reserve(owner=1, vi=1, demand=demand(send=30)) == Grant(part_ns=600_000_000)
    # A fifth is left: 10 MB/s to send, or 20 to receive.
    refused = card.reserve(owner=1, vi=2, demand=demand(send=25))
    assert refused == Refusal(
        reason="VI 2: 25 MB/s in messages of 1000 bytes take 50.00% of the card, of which 20.00% are free: at most "
        "10.000 MB/s",
        acceptable_bytes_per_s=10_000_000,
    )
    assert card.promised(2) is None and len(card) == 1
    over = Demand(receive_bytes_per_s=20_000_001, message_bytes=1000)
    refused = card.reserve(owner=1, vi=2, demand=over)
    assert isinstance(refused, Refusal) and refused.acceptable_bytes_per_s == 20_000_000
    assert isinstance(card.reserve(owner=1, vi=2, demand=demand(receive=20)), Grant)
    refused = card.reserve(owner=1, vi=3, demand=demand(send=1e-6))
    assert isinstance(refused, Refusal) and refused.acceptable_bytes_per_s == 0
    assert refused.reason.endswith("of which 0.00% are free: no rate fits")


def test_small_messages_have_less():
    time = MessageTime(fixed_ns=10_000, byte_ps=10_000)
    whole = 10**9
    assert [time.most_bytes_per_s(whole, size) for size in (4, 1000, 9000)] == [
        398_406,
        50_000_000,
        90_000_000,
    ]
    # Rounded up by less than a message's nanosecond: never less than what was asked for.
    assert time.message_ns(3) == 10_030 and MessageTime(fixed_ns=0, byte_ps=1).message_ns(1) == 1


def test_both_ways_of_a_vi_are_charged_to_one_card():
    card = CardAdmission(capacity=CAPACITY, best_effort_part=0)
    refused = card.reserve(owner=0, vi=1, demand=demand(send=40, receive=40))
    assert isinstance(refused, Refusal)
    # x/50 + x/100 = 1: the same in both ways.
    assert abs(refused.acceptable_bytes_per_s - 33_333_333) <= 1
    most = refused.acceptable_bytes_per_s
    fits = Demand(send_bytes_per_s=most, receive_bytes_per_s=most, message_bytes=1000)
    assert isinstance(card.reserve(owner=0, vi=1, demand=fits), Grant)
    assert isinstance(card.reserve(owner=0, vi=2, demand=demand(send=1)), Refusal)


def test_a_rate_is_negotiated_anew():
    card = CardAdmission(capacity=CAPACITY, best_effort_part=0)
    card.reserve(owner=0, vi=1, demand=demand(send=30))
    card.reserve(owner=0, vi=2, demand=demand(send=10))
    refused = card.reserve(owner=0, vi=1, demand=demand(send=45))
    assert isinstance(refused, Refusal) and refused.acceptable_bytes_per_s == 40_000_000
    assert card.promised(1) == demand(send=30) and card.used_ns == 800_000_000
    assert isinstance(card.reserve(owner=0, vi=1, demand=demand(send=40)), Grant)
    assert card.used_ns == 10**9
    assert isinstance(card.reserve(owner=0, vi=1, demand=demand(send=5)), Grant)
    assert card.used_ns == 300_000_000


@pytest.mark.parametrize("seed", range(5))
def test_random_histories_leave_nothing_behind(seed):
    rng = random.Random(seed)
    card = CardAdmission(capacity=via_capacity("qosvia"))
    lived: dict[int, int] = {}
    granted = refused = 0
    for _ in range(2000):
        what, vi = rng.random(), rng.randrange(40)
        if what < 0.6:
            owner = lived.get(vi, rng.randrange(6))
            asked = Demand(
                send_bytes_per_s=rng.randrange(0, 20_000_000),
                receive_bytes_per_s=rng.randrange(1, 20_000_000),
                message_bytes=rng.randrange(1, 16385),
            )
            before = card.used_ns
            answer = card.reserve(owner=owner, vi=vi, demand=asked)
            if isinstance(answer, Grant):
                lived[vi], granted = owner, granted + 1
            else:
                refused += 1
                assert card.used_ns == before
                if answer.acceptable_bytes_per_s > 0:
                    most = answer.acceptable_bytes_per_s
                    larger = max(asked.send_bytes_per_s, asked.receive_bytes_per_s)
                    less = Demand(
                        send_bytes_per_s=-(-asked.send_bytes_per_s * most // larger),
                        receive_bytes_per_s=-(-asked.receive_bytes_per_s * most // larger),
                        message_bytes=asked.message_bytes,
                    )
                    # The offer is no lie.
                    assert isinstance(card.reserve(owner=owner, vi=vi, demand=less), Grant)
                    lived[vi] = owner
        elif what < 0.95:
            card.release(vi)
            lived.pop(vi, None)
        else:
            owner = rng.randrange(6)
            card.release_owner(owner)
            lived = {vi: its for vi, its in lived.items() if its != owner}
        assert set(card) == set(lived) and 0 <= card.used_ns <= card.whole_ns
    assert granted > 100 and refused > 100
    for owner in range(6):
        card.release_owner(owner)
    assert len(card) == 0 and card.used_ns == 0


def test_vticks_never_promise_too_little():
    # 32 MB/s in messages of 4096 bytes: 128 us, ticks of half a microsecond.
    assert vtick(32_000_000, 4096, tick_ns=500) == 256
    assert vtick(33_000_000, 4096, tick_ns=500) == 248
    assert vtick(4_000_000_000, 4, tick_ns=500) == 1


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"^Demand: 0 and 0 bytes/s: not negative, and one above 0$"):
        Demand(message_bytes=1)
    with pytest.raises(ValueError, match=r"^Demand: message_bytes = 0: at least 1$"):
        Demand(send_bytes_per_s=1, message_bytes=0)
    with pytest.raises(ValueError, match=r"^best_effort_part = 1: at least 0 and below 1$"):
        CardAdmission(capacity=CAPACITY, best_effort_part=1)
    with pytest.raises(ValueError, match=r"not negative, and not both 0$"):
        MessageTime(fixed_ns=0, byte_ps=0)
    with pytest.raises(
        ConfigError, match=r"^no capacity measured of the VIA design 'mvia'; measured: svia, pvia, qosvia$"
    ):
        via_capacity("mvia")
