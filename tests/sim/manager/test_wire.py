"""The managers' messages: what is packed is what is unpacked; what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.wire import Answer, Envelope, Kind, Reply, Request, Stand, Status, Update

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
    assert list(Update.unpack(5, Update(shares=shares).pack()).shares) == shares


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
        (lambda body: Update.unpack(0, body), "a body of 3 bytes: a multiple of 14 is right"),
        (Answer.unpack, "a body of 3 bytes: 16 are right"),
    ],
)
def test_what_is_too_short_is_refused(unpack, message):
    with pytest.raises(ValueError) as caught:
        unpack(b"abc")
    assert str(caught.value) == message


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="99 is not a valid Kind"):
        Envelope.unpack(bytes([99]) + bytes(11))
