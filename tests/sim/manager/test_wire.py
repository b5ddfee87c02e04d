"""The managers' messages: each is unpacked as it was packed, and bytes that are none are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.versions import Ballot, Entry, Version
from lanikai.sim.manager.wire import (
    ENTRIES,
    MESSAGE_BYTES,
    UPDATE_FLOWS,
    Answer,
    Change,
    Envelope,
    Kind,
    Reply,
    Request,
    Stand,
    Status,
    Update,
    pack_ballot,
    pack_entries,
    pack_version,
    unpack_ballot,
    unpack_entries,
    unpack_version,
)

byte, half, word = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32))
flows = st.builds(FlowId, st.just(5), byte, half, byte, byte)


@given(
    st.builds(
        Envelope,
        kind=st.sampled_from(Kind),
        reply=st.sampled_from(Reply),
        sender=half,
        incarnation=word,
        sequence=word,
        body=st.binary(max_size=40),
    )
)
def test_an_envelope_arrives_as_it_was_packed(envelope):
    assert Envelope.unpack(envelope.pack()) == envelope
    assert len(envelope.pack()) == 12 + len(envelope.body)


@given(flows, word, word, st.lists(st.tuples(flows, word, word)))
def test_bodies_arrive_as_they_were_packed(flow, weight, rate, shares):
    request = Request(flow=flow, weight=weight, rate=rate)
    assert Request.unpack(5, request.pack()) == request
    stand = Stand(flow=flow, weight=weight)
    assert Stand.unpack(5, stand.pack()) == stand
    update = Update(ballot=Ballot(weight, 7), shares=shares)
    assert Update.unpack(5, update.pack()) == update
    entries = [Entry(one, rate, weight & 255) for one, rate, _ in shares]
    change = Change(
        ballot=Ballot(weight, 7),
        base=Version(Ballot(3, 1), rate),
        index=weight,
        reset=bool(rate & 1),
        at=0,
        total=len(entries),
        entries=entries,
    )
    assert Change.unpack(change.pack()) == change
    assert unpack_ballot(pack_ballot(Ballot(weight, 7), rate), 1) == (Ballot(weight, 7), (rate,))
    assert unpack_version(pack_version(change.version, 9)) == (change.version, 9)


def test_a_message_holds_as_much_as_it_says():
    """Each is a page: 291 flows of an UPDATE, 338 entries of a CHANGE or of a copy that is fetched."""
    flow, ballot = FlowId(5, 1, 2, 3), Ballot(1, 0)
    update = Update(ballot=ballot, shares=[(flow, 1, 1)] * UPDATE_FLOWS).pack()
    entries = [Entry(flow, 1, 0)] * ENTRIES
    change = Change(
        ballot=ballot, base=Version(ballot, 0), index=1, reset=True, at=0, total=9, entries=entries
    ).pack()
    fetched = Answer(status=Status.OK, more=pack_entries(entries)).pack()
    assert (UPDATE_FLOWS, ENTRIES) == (291, 338)
    for body, step in ((update, 14), (change, 12), (fetched, 12)):
        assert MESSAGE_BYTES - step < 12 + len(body) + 13 and 12 + len(body) <= MESSAGE_BYTES


@given(st.sampled_from(Status), byte, half, half, half, word, word)
def test_an_answer_arrives_as_it_was_packed(status, where, place, port, vote, rate, idt):
    answer = Answer(status=status, where=where, place=place, port=port, vote=vote, rate=rate, idt_ticks=idt)
    assert Answer.unpack(answer.pack()) == answer


@pytest.mark.parametrize(
    ("unpack", "message"),
    [
        (Envelope.unpack, "a message of 3 bytes: at least 12"),
        (lambda body: Request.unpack(0, body), "a body of 3 bytes: 14 are right"),
        (lambda body: Stand.unpack(0, body), "a body of 3 bytes: 10 are right"),
        (lambda body: Update.unpack(0, body), "a body of 3 bytes: 6 and a multiple of 14 are right"),
        (Answer.unpack, "a body of 3 bytes: at least 16"),
        (Change.unpack, "a body of 3 bytes: at least 25"),
        (unpack_ballot, "a body of 3 bytes: 6 are right"),
        (unpack_entries, "entries of 3 bytes: a multiple of 12 is right"),
        (unpack_version, "a body of 3 bytes: 14 are right"),
    ],
)
def test_what_is_too_short_is_refused(unpack, message):
    with pytest.raises(ValueError) as caught:
        unpack(b"abc")
    assert str(caught.value) == message


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="99 is not a valid Kind"):
        Envelope.unpack(bytes([99]) + bytes(11))
