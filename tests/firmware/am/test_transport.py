"""The transport's single steps: each number of a channel has one fate, whatever becomes of its packets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lanikai.firmware.am.channels import FIRST_SEQUENCE
from lanikai.firmware.am.messages import Ending, Fresh
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.wire import SEQUENCE_MODULUS, Reason, unpack_channel
from lanikai.hdl.packet import Kind
from support.firmware.am_pair import SMALL, Pair, message


def met(**changes: object) -> Pair:
    """Two cards that know each other's incarnation."""
    pair = Pair(**changes)
    pair.cards[0].offer(message(number=99))
    pair.run()
    assert pair.delivered == [99] and [outcome.ending for outcome in pair.outcomes()] == [Ending.DELIVERED]
    pair.delivered.clear()
    return pair


def test_a_card_asks_for_the_others_incarnation_before_the_first_message():
    pair = Pair(incarnations=(7, 9))
    assert pair.cards[0].offer(message(number=5))
    (ask,) = pair.send(0)
    assert unpack_channel(ask.header.bandwidth) == (0, True) and ask.data_bytes == 0
    pair.exchange([ask])
    assert pair.delivered == []
    (data,) = pair.send(0)
    assert (data.header.sequence, data.words[6]) == (FIRST_SEQUENCE, 7 | 9 << 16)
    pair.exchange([data])
    assert pair.delivered == [5] and not pair.cards[0].unacknowledged and not pair.cards[0].pending - 1


def test_a_copy_is_acknowledged_again_and_not_delivered():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    answers = [pair.carry(data) for _ in range(3)]
    assert pair.delivered == [1] and {(a.header.kind, a.header.flow) for a in answers} == {(Kind.ACK, 0)}
    for answer in answers:
        pair.carry(answer)
    assert [outcome.reason for outcome in pair.outcomes()] == [Reason.DELIVERED]
    pair.cards[0].offer(message(number=2))
    pair.run()
    assert pair.carry(data) is None and pair.delivered == [1, 2]


def test_a_copy_that_comes_while_the_message_is_being_delivered_is_thrown_away():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    fresh = pair.cards[1].arrived(data.header, data.words)
    assert isinstance(fresh, Fresh) and (fresh.node, fresh.words, fresh.data_offset) == (0, (1,), 36)
    assert pair.cards[1].arrived(data.header, data.words) is None
    pair.carry(pair.cards[1].answer(fresh, Reason.DELIVERED))
    assert [outcome.ending for outcome in pair.outcomes()] == [Ending.DELIVERED]
    with pytest.raises(ValueError, match=r"^message of node 0: it was answered before$"):
        pair.cards[1].answer(fresh, Reason.DELIVERED)


@pytest.mark.parametrize(
    ("reason", "scans"), [(Reason.NO_BUFFER, 1), (Reason.NOT_RESIDENT, SMALL.absent_scans)]
)
def test_a_refusal_is_only_noted_and_the_scan_sends_again(reason, scans):
    pair = met()
    pair.say = reason
    pair.cards[0].offer(message(number=1))
    pair.run()
    assert pair.send(0) == [] and pair.cards[0].unacknowledged == 1 and not pair.outcomes()
    pair.say = Reason.DELIVERED
    for _ in range(scans):
        assert not pair.cards[0].ready
        assert pair.cards[0].scan() == (1, 1)
    pair.run()
    assert pair.delivered == [1] and [outcome.ending for outcome in pair.outcomes()] == [Ending.DELIVERED]


def absent(messages: int = 1) -> Pair:
    """Messages of card 0 that were refused, as endpoint 0 of card 1 is not resident. Now all would be taken."""
    pair = met()
    pair.say = Reason.NOT_RESIDENT
    for number in range(messages):
        pair.cards[0].offer(message(number=number))
    pair.run()
    pair.say = Reason.DELIVERED
    assert not pair.cards[0].ready and pair.cards[1].missed(0) and not pair.cards[1].missed(1)
    return pair


def test_packets_for_an_absent_endpoint_come_at_once_when_it_has_been_loaded():
    pair = absent(messages=3)
    assert pair.cards[1].loaded(1) == []
    told = pair.cards[1].loaded(0)
    assert [(one.header.flow, one.header.sequence) for one in told] == [(Reason.RESIDENT, 0)]
    assert not pair.cards[1].missed(0) and pair.cards[1].loaded(0) == []
    pair.exchange(told)
    pair.run()
    assert sorted(pair.delivered) == [0, 1, 2]
    pair.exchange(told)  # copies of the past
    assert not pair.cards[0].ready and not pair.cards[0].pending - 3


def test_an_invitation_that_is_lost_costs_a_wait_for_the_scan():
    pair = absent()
    pair.cards[1].loaded(0)
    for _ in range(SMALL.absent_scans):
        assert not pair.cards[0].ready
        pair.cards[0].scan()
    pair.run()
    assert pair.delivered == [0]


def test_an_invitation_may_overtake_the_refusal_and_that_of_an_earlier_try_says_nothing():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    pair.say = Reason.NOT_RESIDENT
    refusal = pair.carry(data)
    (told,) = pair.cards[1].loaded(0)
    pair.carry(told)
    assert not pair.cards[0].ready, "its answer may be that it has been delivered"
    pair.carry(refusal)
    (again,) = pair.send(0)
    pair.carry(refusal)
    assert not pair.cards[0].ready and pair.cards[0].unacknowledged == 1
    pair.say = Reason.DELIVERED
    pair.exchange([again])
    assert pair.delivered == [1]


def test_a_channel_that_has_gone_on_or_begun_anew_has_no_packet_for_an_absent_endpoint():
    pair = absent()
    pair.cards[0].quiesce(0)
    pair.exchange(pair.send(0))
    assert pair.cards[0].quiet(0)
    pair.exchange(pair.cards[1].loaded(0))
    assert not pair.cards[0].ready and not pair.cards[1].missed(0)
    pair = absent()
    pair.cards[0] = Transport(pair.config, node=0, incarnation=2)
    pair.cards[0].offer(message(number=7))
    pair.run()
    assert pair.delivered == [7] and not pair.cards[1].missed(0) and pair.cards[1].loaded(0) == []


class Absent(Pair):
    """Card 1's endpoints are absent but for those `here`."""

    here: frozenset[int] = frozenset()

    def carry(self, packet):
        fresh = self.cards[packet.header.destination].arrived(packet.header, packet.words)
        if not isinstance(fresh, Fresh):
            return fresh
        there = fresh.endpoint in self.here
        if there:
            self.delivered.append(fresh.words[0])
        return self.cards[1].answer(fresh, Reason.DELIVERED if there else Reason.NOT_RESIDENT)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_many_absent_endpoints_are_all_tried_once_and_each_has_a_channel_when_it_comes(channels):
    """Without a scan: an absent one gives its channel up to those not tried yet, and to those that have come."""
    pair = Absent(SMALL.replace(request_channels=channels))
    for source in range(9):
        for number in range(3):
            pair.cards[0].offer(message(source=source, endpoint=source, number=10 * source + number))
    pair.run(100)
    assert all(pair.cards[1].missed(endpoint) for endpoint in range(9))
    assert not pair.cards[0].ready and pair.cards[0].scans
    for endpoint in (4, 0, 8, 1, 7, 2, 3, 6, 5):
        pair.here = frozenset({endpoint})
        pair.delivered.clear()
        pair.exchange(pair.cards[1].loaded(endpoint))
        pair.run(6)
        assert sorted(pair.delivered) == [10 * endpoint + number for number in range(3)]
    assert not pair.cards[0].pending - 27 and not pair.cards[0].scans


def test_absent_endpoints_without_a_channel_are_tried_again_if_no_invitation_comes():
    pair = Absent(SMALL.replace(request_channels=1))
    for source in range(5):
        pair.cards[0].offer(message(source=source, endpoint=source, number=source))
    pair.run(100)
    for endpoint in range(5):
        pair.cards[1].loaded(endpoint)
    pair.here = frozenset(range(5))
    for _ in range(SMALL.absent_scans + 1):
        pair.cards[0].scan()
        pair.run(100)
    assert sorted(pair.delivered) == list(range(5))


@pytest.mark.parametrize("reason", [Reason.WRONG_TAG, Reason.NO_ENDPOINT, Reason.TOO_LONG, Reason.OUTSIDE])
def test_a_final_refusal_is_the_numbers_fate_and_the_message_comes_back(reason):
    pair = met()
    pair.say = reason
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    pair.carry(data)  # this answer is lost
    pair.say = Reason.DELIVERED
    pair.exchange([data])
    (outcome,) = pair.outcomes()
    assert (outcome.ending, outcome.reason) == (Ending.RETURNED, reason) and pair.delivered == []


def test_a_lost_packet_is_sent_again_by_the_second_scan_after_it():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (lost,) = pair.send(0)
    pair.cards[0].scan()
    assert pair.send(0) == []
    pair.cards[0].scan()
    (again,) = pair.send(0)
    assert again.header == lost.header and again.words != lost.words, "only the stamp differs"
    pair.exchange([again])
    assert pair.delivered == [1]


def test_a_message_without_any_answer_comes_back_and_all_channels_ask_before_they_go_on():
    pair = met()
    pair.cards[0].offer(message(number=1))
    tries = 0
    for _ in range(2 * SMALL.tries):
        tries += len(pair.send(0))
        pair.cards[0].scan()
    assert tries == SMALL.tries
    (outcome,) = pair.outcomes()
    assert (outcome.ending, outcome.reason) == (Ending.RETURNED, Reason.UNREACHABLE)
    assert not pair.cards[0].unacknowledged
    for number in (2, 3, 4, 5):
        pair.cards[0].offer(message(number=number))
    packets = pair.send(0)
    voids = [packet for packet in packets if unpack_channel(packet.header.bandwidth)[1]]
    asked = {unpack_channel(void.header.bandwidth)[0]: void.header.sequence for void in voids}
    # The card was down: each channel asks. The number that was given up is asked for again.
    first = FIRST_SEQUENCE % SEQUENCE_MODULUS
    assert len(voids) == 4 and asked == {0: (first + 1) % SEQUENCE_MODULUS, 1: first, 2: first, 3: first}
    pair.exchange(packets)
    pair.run()
    assert sorted(pair.delivered) == [2, 3, 4, 5]


def test_packets_of_a_message_that_was_given_up_come_too_late():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (late,) = pair.send(0)
    for _ in range(2 * SMALL.tries):
        pair.send(0)
        pair.cards[0].scan()
    for number in (2, 3, 4, 5):
        pair.cards[0].offer(message(number=number))
    pair.run()
    pair.carry(late)
    assert sorted(pair.delivered) == [2, 3, 4, 5]


def test_refusals_end_no_message_however_many_there_are():
    pair = met()
    pair.say = Reason.NO_BUFFER
    pair.cards[0].offer(message(number=1))
    for _ in range(10 * SMALL.tries):
        pair.run(2)
        pair.cards[0].scan()
    assert not pair.outcomes()


def test_a_refusal_of_an_earlier_try_is_not_taken_for_one_of_the_last():
    pair = met()
    pair.say = Reason.NO_BUFFER
    pair.cards[0].offer(message(number=1))
    (first,) = pair.send(0)
    early = pair.carry(first)
    pair.scan()
    (second,) = pair.send(0)
    pair.carry(early)
    pair.cards[0].scan()
    assert pair.send(0) == [], "no answer to the second try yet"
    pair.exchange([second])
    pair.cards[0].scan()
    assert len(pair.send(0)) == 1


# Endpoints.


def test_messages_of_which_nothing_was_sent_are_withdrawn_at_once():
    pair = met()
    for number in range(6):
        pair.cards[0].offer(message(number=number, source=3))
    pair.cards[0].quiesce(3)
    assert pair.cards[0].quiet(3) and pair.send(0) == []
    assert [outcome.ending for outcome in pair.outcomes()] == [Ending.WITHDRAWN] * 6
    with pytest.raises(ValueError, match=r"^endpoint 3: it is to be quiet, and sends nothing$"):
        pair.cards[0].offer(message(source=3))
    pair.cards[0].resume(3)
    assert pair.cards[0].offer(message(source=3, number=7))
    pair.run()
    assert pair.delivered == [7]


def test_a_refused_message_is_withdrawn_when_the_other_card_has_made_its_fate_final():
    pair = met()
    pair.say = Reason.NOT_RESIDENT
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    pair.exchange([data])
    pair.cards[0].quiesce(0)
    assert not pair.cards[0].quiet(0)
    with pytest.raises(ValueError, match=r"^endpoint 0: 1 of its messages have not ended$"):
        pair.cards[0].resume(0)
    (void,) = pair.send(0)
    assert unpack_channel(void.header.bandwidth) == (0, True) and void.header.sequence == data.header.sequence
    pair.exchange([void])
    assert pair.cards[0].quiet(0) and [outcome.ending for outcome in pair.outcomes()] == [Ending.WITHDRAWN]
    pair.say = Reason.DELIVERED
    pair.carry(data)  # a copy of the past
    assert pair.delivered == []


def test_a_message_that_was_delivered_is_so_whatever_the_void_was_to_do():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    pair.carry(data)  # the answer is lost
    pair.cards[0].quiesce(0)
    assert pair.send(0) == [], "its answer may come yet"
    pair.scan()
    (void,) = pair.send(0)
    pair.exchange([void])
    assert [outcome.ending for outcome in pair.outcomes()] == [Ending.DELIVERED] and pair.delivered == [1]


def test_an_abandoned_endpoint_is_quiet_at_once_and_its_channels_are_free_later():
    pair = met()
    for number in range(6):
        pair.cards[0].offer(message(number=number))
    packets = pair.send(0)
    pair.cards[0].abandon(0)
    assert pair.cards[0].quiet(0) and not pair.cards[0].pending
    voids = pair.send(0)
    assert len(voids) == 4
    pair.exchange(voids)
    pair.exchange(packets)
    assert pair.delivered == [] and not pair.outcomes() and not pair.cards[0].unacknowledged
    assert pair.cards[0].offer(message(number=7, source=1))
    pair.run()
    assert pair.delivered == [7]


# Cards that are started again.


def test_a_card_that_was_started_again_takes_no_copy_of_what_it_had_taken_before():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    pair.carry(data)
    pair.cards[1] = Transport(SMALL, node=1, incarnation=2)
    pair.exchange([data])
    (outcome,) = pair.outcomes()
    assert pair.delivered == [1] and (outcome.ending, outcome.reason) == (Ending.RETURNED, Reason.RESTARTED)
    pair.cards[0].offer(message(number=2))
    pair.run()
    assert pair.delivered == [1, 2]


def test_packets_of_a_cards_earlier_life_are_thrown_away():
    pair = Pair()
    pair.cards[0].offer(message(number=1))
    pair.exchange(pair.send(0))
    (old,) = pair.send(0)
    assert old.header.sequence == FIRST_SEQUENCE
    pair.cards[0] = Transport(SMALL, node=0, incarnation=2)
    pair.cards[0].offer(message(number=2))
    pair.run()
    assert pair.delivered == [2] and pair.carry(old) is None and pair.delivered == [2]
    assert pair.cards[1].drops["stale"] == 1


def test_messages_of_which_nothing_was_sent_go_to_the_new_life():
    pair = met()
    for number in range(4):
        pair.cards[0].offer(message(number=number))
    first = pair.cards[0].next_packet(1)
    for number in (4, 5):
        pair.cards[0].offer(message(number=number))
    pair.cards[1] = Transport(SMALL, node=1, incarnation=2)
    pair.exchange([first])
    pair.run()
    ends = {outcome.message.words[0]: outcome.ending for outcome in pair.outcomes()}
    assert ends == {0: Ending.RETURNED} | dict.fromkeys(range(1, 6), Ending.DELIVERED)
    assert sorted(pair.delivered) == [1, 2, 3, 4, 5]


# Without reliability.


def test_without_reliability_nothing_is_acknowledged_and_a_message_ends_as_it_leaves():
    pair = Pair(SMALL.replace(reliability=False))
    for number in range(6):
        pair.cards[0].offer(message(number=number))
    packets = pair.send(0)
    assert [packet.words[8] for packet in packets] == list(range(6))
    assert [outcome.ending for outcome in pair.outcomes()] == [Ending.DELIVERED] * 6
    assert [pair.carry(packet) for packet in packets] == [None] * 6 and pair.delivered == list(range(6))


def test_packets_that_make_no_sense_are_thrown_away_or_refused():
    pair = met()
    pair.cards[0].offer(message(number=1))
    (data,) = pair.send(0)
    card, header, words = pair.cards[1], data.header, data.words
    for wrong in (
        replace(header, source=8),
        replace(header, bandwidth=8),
        replace(header, length=28),
        replace(header, kind=Kind.PROBE),
    ):
        assert card.arrived(wrong, words) is None
    assert card.arrived(header, words[:5]) is None and card.drops["malformed"] == 5
    answer = card.arrived(replace(header, length=header.length + 4), words)
    assert answer is not None and answer.header.flow == Reason.BAD_MESSAGE
    pair.carry(answer)
    assert [outcome.reason for outcome in pair.outcomes()] == [Reason.BAD_MESSAGE]
    with pytest.raises(ValueError, match=r"^node 8: 0 to 7$"):
        pair.cards[0].offer(message(8))
