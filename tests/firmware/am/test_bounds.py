"""Every wait of the transport has a bound, in scans: for an answer, for a channel, for an endpoint to be quiet."""

from __future__ import annotations

import pytest
from lanikai.firmware.am.messages import Ending, Fresh
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.wire import INCARNATIONS, SEQUENCE_MODULUS, STAMP_MODULUS, Reason
from support.firmware.am_pair import SMALL, Pair, message

STUCK, OTHER = 1, 2
"""Destination endpoints: one whose queue is full, and one that takes all."""


class Full(Pair):
    """Card 1's endpoint `STUCK` takes nothing while `full`."""

    full = True

    def carry(self, packet):
        to = self.cards[packet.header.destination]
        found = to.arrived(packet.header, packet.words)
        if not isinstance(found, Fresh):
            return found
        reason = Reason.NO_BUFFER if found.endpoint == STUCK and self.full else Reason.DELIVERED
        if reason is Reason.DELIVERED:
            self.delivered.append(found.words[0])
        return to.answer(found, reason)


def rounds_until(pair: Pair, done, most: int) -> int:
    """Scans of card 0, each with an exchange of packets after it, until `done`."""
    for scans in range(most + 1):
        pair.run(4)
        if done():
            return scans
        pair.cards[0].scan()
    raise AssertionError(f"not done after {most} scans: {pair.cards[0].state()}")


def silent_scans(card: Transport, done, most: int) -> int:
    """Scans of a card whose packets get no answer, until `done`."""
    for scans in range(most + 1):
        while card.next_packet(scans) is not None:
            pass
        if done():
            return scans
        card.scan()
    raise AssertionError(f"not done after {most} scans: {card.state()}")


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("stuck", [1, 3, 6])
@pytest.mark.parametrize("reply", [False, True])
def test_an_endpoint_whose_receiver_takes_nothing_does_not_stop_others(channels, stuck, reply):
    """Bound until it has a channel: 2 + 2 * ceil(turns / channels) scans; `turns` other endpoints are before it."""
    pair = Full(SMALL.replace(request_channels=channels, reply_channels=channels))
    for number in range(16):
        for source in range(10, 10 + stuck):
            pair.cards[0].offer(message(source=source, endpoint=STUCK, number=1000 + number, reply=reply))
    for _ in range(5):
        pair.run(4)
        pair.cards[0].scan()
    assert pair.delivered == []
    worst = 0
    bound = 2 + 2 * -(-stuck // channels)
    for number in range(20):
        pair.cards[0].offer(message(source=0, endpoint=OTHER, number=number, reply=reply))
        found = rounds_until(pair, lambda number=number: pair.delivered[-1:] == [number], bound)
        worst = max(worst, found)
    assert pair.delivered == list(range(20))
    if channels > 1 and stuck < channels:
        assert found == 0, "endpoints that are known to be stuck leave a channel to others"
    pair.full = False
    rounds_until(pair, lambda: len(pair.delivered) == 20 + 16 * stuck, 40 * stuck)


def test_endpoints_that_are_stuck_take_turns():
    pair = Full(SMALL.replace(request_channels=2))
    for source in range(8):
        for number in range(4):
            pair.cards[0].offer(message(source=source, endpoint=STUCK, number=10 * source + number))
    for _ in range(3):
        tried = set()
        for _ in range(2 + 2 * 8):
            for _ in range(3):
                packets = pair.send(0)
                tried |= {one.message.header.source_endpoint for one in packets if one.message is not None}
                pair.exchange(packets)
            pair.cards[0].scan()
        assert tried == set(range(8))


def test_one_endpoints_messages_to_another_receiver_go_past_those_that_are_refused():
    pair = Full()
    for number in range(12):
        pair.cards[0].offer(message(source=0, endpoint=STUCK, number=100 + number))
    pair.run()
    pair.cards[0].offer(message(source=0, endpoint=OTHER, number=1))
    rounds_until(pair, lambda: pair.delivered == [1], 2)


def test_requests_that_are_refused_hold_up_no_reply():
    pair = Full()
    for number in range(40):
        pair.cards[0].offer(message(endpoint=STUCK, number=number))
    pair.run()
    for number in range(40):
        pair.cards[0].offer(message(endpoint=OTHER, number=number, reply=True))
    pair.run()
    assert pair.delivered == list(range(40))


def test_a_message_to_a_silent_card_comes_back_after_two_scans_for_each_try():
    known, unknown = Pair(), Pair()
    known.cards[0].offer(message(number=99))
    known.run()
    known.outcomes()
    for pair in (known, unknown):
        card = pair.cards[0]
        for number in range(4):
            card.offer(message(number=number))
        # A packet is old enough to be sent again at the second scan after it, and so at every second one.
        scans = silent_scans(card, lambda card=card: not card.open(0), 2 * SMALL.tries)
        assert scans == 2 * SMALL.tries
        assert [outcome.reason for outcome in pair.outcomes()] == [Reason.UNREACHABLE] * 4


@pytest.mark.parametrize("silence", [2, 5])
def test_a_packet_without_an_answer_is_sent_again_after_so_many_scans_and_a_refused_one_after_one(silence):
    pair = Pair(SMALL.replace(silence_scans=silence))
    card = pair.cards[0]
    card.offer(message(number=99))
    pair.run()
    pair.outcomes()
    card.offer(message(number=1))
    (lost,) = pair.send(0)
    for _ in range(silence):
        card.scan()
        assert not card.ready
    card.scan()
    (again,) = pair.send(0)
    assert again.header == lost.header
    pair.say = Reason.NO_BUFFER
    pair.exchange([again])
    card.scan()
    pair.say = Reason.DELIVERED
    pair.run()
    assert pair.delivered == [99, 1]
    card.offer(message(number=2))
    scans = silent_scans(card, lambda: not card.open(0), (silence + 1) * SMALL.tries)
    assert scans == (silence + 1) * SMALL.tries
    card.offer(message(number=3))
    assert silent_scans(card, lambda: not card.open(0), silence + 1) == silence + 1


def test_all_messages_to_a_card_that_is_down_come_back_and_later_ones_after_one_try():
    pair = Pair()
    card = pair.cards[0]
    for number in range(16):
        card.offer(message(number=number))
    silent_scans(card, lambda: not card.open(0), 2 * SMALL.tries)
    for number in range(16):
        card.offer(message(number=number, source=3))
    silent_scans(card, lambda: not card.open(3), 2)
    assert [outcome.reason for outcome in pair.outcomes()] == [Reason.UNREACHABLE] * 32
    for number in range(6):
        card.offer(message(number=number))
    pair.run()
    assert pair.delivered == list(range(6)) and len(pair.outcomes()) == 6
    card.offer(message(number=7))
    for _ in range(2 * SMALL.tries - 1):
        card.next_packet(0)
        card.scan()
    assert card.open(0), "it has answered, so that it has all tries again"


@pytest.mark.parametrize("known", [False, True])
def test_a_message_to_a_silent_card_comes_back_though_its_endpoint_is_unloaded_all_the_while(known):
    """Each time it is withdrawn before a packet of it is given up. The tries of its card go on."""
    pair = Pair()
    card = pair.cards[0]
    if known:
        card.offer(message(number=99))
        pair.run()
        pair.outcomes()
    card.offer(message(number=1))
    for times in range(4 * SMALL.tries):
        while card.next_packet(times) is not None:
            pass
        card.scan()
        card.quiesce(0)
        while not card.quiet(0):
            while card.next_packet(times) is not None:
                pass
            card.scan()
        (outcome,) = pair.outcomes()
        card.resume(0)
        if outcome.ending is Ending.RETURNED:
            break
        card.offer(message(number=1))
    assert outcome.reason is Reason.UNREACHABLE and times <= SMALL.tries + 2


def test_an_endpoint_is_quiet_after_two_scans_if_the_other_card_answers():
    for lost in (False, True):
        pair = Pair()
        pair.cards[0].offer(message(number=99))
        pair.run()
        for number in range(8):
            pair.cards[0].offer(message(number=number))
        packets = pair.send(0)
        if not lost:
            pair.exchange(packets)
        pair.cards[0].quiesce(0)
        rounds_until(pair, lambda pair=pair: pair.cards[0].quiet(0), 2 if lost else 0)
        ends = {outcome.ending for outcome in pair.outcomes()}
        assert ends == {Ending.DELIVERED, Ending.WITHDRAWN}


def test_an_endpoint_is_quiet_after_two_scans_for_each_try_and_one_if_the_other_card_is_silent():
    pair = Pair()
    pair.cards[0].offer(message(number=99))
    pair.run()
    pair.outcomes()
    card = pair.cards[0]
    card.offer(message(number=1))
    card.next_packet(1)
    card.quiesce(0)
    scans = silent_scans(card, lambda: card.quiet(0), 2 * SMALL.tries + 1)
    assert scans == 2 * SMALL.tries + 1
    assert [outcome.reason for outcome in pair.outcomes()] == [Reason.UNREACHABLE]


def test_channels_of_an_abandoned_endpoint_are_free_after_two_scans_for_each_try():
    pair = Pair()
    pair.cards[0].offer(message(number=99))
    pair.run()
    pair.outcomes()
    card = pair.cards[0]
    for number in range(4):
        card.offer(message(number=number))
    while card.next_packet(1) is not None:
        pass
    card.abandon(0)
    assert not card.pending
    silent_scans(card, lambda: not card.unacknowledged, 2 * SMALL.tries)


def test_a_scan_looks_only_at_rows_with_a_packet_that_waits():
    pair = Pair()
    for node in (1, 2, 3):
        pair.cards[0].offer(message(node))
    assert pair.cards[0].scan() == (0, 0), "nothing is sent yet"
    while pair.cards[0].next_packet(1) is not None:
        pass
    assert pair.cards[0].scan() == (3, 3)
    pair.cards[0].abandon(0)
    assert pair.cards[0].scan() == (0, 0)


# Counters across their wraps.


@pytest.mark.full
def test_a_channel_goes_across_the_wrap_of_its_numbers():
    pair = Pair(SMALL.replace(request_channels=1))
    total = SEQUENCE_MODULUS + 100
    for number in range(total):
        pair.cards[0].offer(message(number=number))
        pair.exchange(pair.send(0))
        if not number:
            pair.run()
        assert pair.delivered.pop() == number and not pair.delivered
        assert [outcome.ending for outcome in pair.outcomes()] == [Ending.DELIVERED]


def test_stamps_go_across_their_wrap_and_no_two_tries_have_the_same():
    pair = Pair()
    pair.cards[0].offer(message(number=0))
    pair.run()
    assert pair.delivered.pop() == 0
    pair.now = STAMP_MODULUS - 6
    pair.say = Reason.NO_BUFFER
    pair.cards[0].offer(message(number=1))
    stamps = []
    for turn in range(20):
        packets = pair.send(0)
        if turn % 3 == 0:
            pair.now -= 1  # the clock stands still
        stamps += [packet.words[5] for packet in packets]
        pair.exchange(packets)
        pair.cards[0].scan()
    assert len(stamps) == len(set(stamps)) == 20 and min(stamps) < 100 < max(stamps)
    pair.say = Reason.DELIVERED
    pair.run()
    assert pair.delivered == [1]


def test_incarnations_go_across_their_wrap():
    pair = Pair(incarnations=(1, INCARNATIONS - 1))
    for life, incarnation in enumerate((INCARNATIONS - 1, 1, 2)):
        pair.cards[1] = Transport(SMALL, node=1, incarnation=incarnation)
        for number in range(3):
            pair.cards[0].offer(message(number=10 * life + number))
        pair.run()
        pair.cards[1].offer(message(0, number=10 * life + 5))
        pair.run()
    ends = [outcome for outcome in pair.outcomes() if outcome.ending is Ending.RETURNED]
    lost = {outcome.message.words[0] for outcome in ends}
    assert all(outcome.reason is Reason.RESTARTED for outcome in ends)
    assert {*pair.delivered, *lost} == {0, 1, 2, 5, 10, 11, 12, 15, 20, 21, 22, 25}
    assert not lost & set(pair.delivered) and len(pair.delivered) + len(lost) == 12
