"""The words that firmware and host share: places that do not overlap, words that read back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware.gm.config import GmConfig
from lanikai.firmware.gm.layout import (
    Counts,
    Event,
    EventKind,
    Layout,
    ReceiveDescriptor,
    SendDescriptor,
    Status,
)
from lanikai.firmware.gm.state import Connection, SendToken
from lanikai.firmware.gm.wire import SEQUENCE_MODULUS, FlowKey, behind, pack_flow, unpack_flow
from lanikai.hdl.config import ConfigError, NicConfig, preset

WORD = st.integers(0, (1 << 32) - 1)

KEY = FlowKey(0, 0, 0)


@pytest.mark.parametrize("name", ["tiny", "lanai4"])
def test_places_in_sram_do_not_overlap(name: str) -> None:
    nic = preset(NicConfig, name)
    layout = Layout(nic, GmConfig.for_nic(nic))
    taken = [(start, nic.packet_bytes) for start in layout.transmit_buffers + layout.receive_buffers]
    taken += [(layout.acknowledgement, 16), (layout.event, 32)]
    for port in range(layout.gm.ports):
        taken.append((layout.command(port), 12))
        taken += [(layout.send_descriptor(port, n), 16) for n in range(layout.gm.send_tokens)]
        taken += [(layout.receive_descriptor(port, n), 16) for n in range(layout.gm.receive_tokens)]
        assert layout.send_descriptor(port, layout.gm.send_tokens) == layout.send_descriptor(port, 0)
    taken.sort()
    for (start, size), (after, _) in pairwise(taken):
        assert start % 16 == 0 and start + size <= after
    assert sum(taken[-1]) <= nic.sram_bytes


def test_a_card_that_is_too_small_is_refused() -> None:
    nic = preset(NicConfig, "tiny")
    message = (
        r"^NicConfig.sram_bytes = 8192: GM needs 13072 bytes; fewer tokens, ports or buffers, or a shorter"
    )
    with pytest.raises(ConfigError, match=message):
        Layout(nic, GmConfig.for_nic(nic, send_tokens=64, receive_tokens=60))
    with pytest.raises(
        ConfigError, match=r"^GmConfig.ports = 5: a port is a doorbell channel, the card has 4$"
    ):
        Layout(nic, GmConfig.for_nic(nic, ports=5))
    owned = nic.replace(owners=2)
    message = r"^NicConfig.owners = 2: GM has a doorbell page a port, and none an owner; 0 for GM$"
    with pytest.raises(ConfigError, match=message):
        Layout(owned, GmConfig.for_nic(owned))


@given(WORD, WORD, st.integers(0, 1023), st.integers(0, 31), st.integers(0, 1), st.integers(0, 63))
def test_descriptors_and_events_read_back(address, length, node, port, priority, token) -> None:
    send = SendDescriptor(
        address=address, length=length, node=node, port=port, priority=priority, token=token
    )
    assert SendDescriptor.unpack(list(send.words())) == send
    receive = ReceiveDescriptor(address=address, length=length, priority=priority, token=token)
    assert ReceiveDescriptor.unpack(list(receive.words())) == receive
    event = Event(
        kind=EventKind.RECEIVED,
        status=Status.HOST_BUS,
        token=token,
        length=length,
        node=node,
        port=port,
        priority=priority,
    )
    words = event.words(5)
    assert Event.unpack([words.get(place, 0) for place in range(8)]) == event and words[7] == 5
    key = FlowKey(port, 31 - port, priority)
    assert unpack_flow(pack_flow(key, bool(token & 1))) == (key, bool(token & 1))


@given(st.integers(0, 1000), st.integers(0, 64), st.integers(0, 64), st.integers(0, 1))
def test_a_doorbell_word_announces_what_is_new(start, sends, receives, commands) -> None:
    old = Counts(sends=start, receives=2 * start, commands=3 * start)
    now = Counts(sends=start + sends, receives=2 * start + receives, commands=3 * start + commands)
    assert now.word() < 1 << 21
    assert old.new(now.word()) == Counts(sends=sends, receives=receives, commands=commands)


@given(st.integers(0, SEQUENCE_MODULUS - 1), st.integers(-1000, 1000))
def test_sequence_numbers_compare_across_their_wrap(sequence, distance) -> None:
    assert behind(sequence, (sequence + distance) % SEQUENCE_MODULUS) == distance


@given(st.integers(SEQUENCE_MODULUS - 20, SEQUENCE_MODULUS - 1), st.lists(st.integers(0, 40), max_size=12))
def test_a_stream_forgets_what_is_acknowledged_and_nothing_else(first, acknowledged) -> None:
    connection = Connection(1, 0, 64)
    stream = connection.sending(KEY)
    stream.next_sequence = first
    descriptor = SendDescriptor(address=0, length=40 * 8, node=1, port=0, priority=0, token=0)
    token = SendToken(descriptor, None)  # type: ignore[arg-type]
    for _ in range(30):
        stream.append(token, 8)
    left = 30
    for step in acknowledged:
        expected = (first + 30 - left + step) % SEQUENCE_MODULUS
        assert not stream.acknowledge(expected)
        left -= step if step <= left else 0
        assert [p.sequence for p in stream.unacknowledged] == [
            (first + n) % SEQUENCE_MODULUS for n in range(30 - left, 30)
        ]
    stream.go_back()
    assert list(stream.resend) == list(stream.unacknowledged) and stream.blocked == bool(left)
    if left:
        stream.acknowledge(stream.unacknowledged[0].sequence + 1 & SEQUENCE_MODULUS - 1)
        assert list(stream.resend) == list(stream.unacknowledged)


def test_a_full_window_blocks_a_stream_until_something_is_acknowledged() -> None:
    stream = Connection(1, 0, 2).sending(KEY)
    descriptor = SendDescriptor(address=0, length=24, node=1, port=0, priority=0, token=0)
    token = SendToken(descriptor, None)  # type: ignore[arg-type]
    for blocked in (False, True):
        stream.append(token, 8)
        assert stream.blocked is blocked
    stream.acknowledge(1)
    assert not stream.blocked
