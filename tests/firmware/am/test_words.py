"""The words of virtual networks: places that do not overlap, words that read back, counts across their wraps."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.layout import PAGE_HEADER_BYTES, AmLayout, PageWord, Queue
from lanikai.firmware.am.wire import (
    AM_HEADER_BYTES,
    INCARNATIONS,
    UNKNOWN_INCARNATION,
    AmHeader,
    Answer,
    MessageKind,
    newer,
    next_incarnation,
    pack_channel,
    unpack_channel,
)
from lanikai.firmware.am.words import (
    COMMAND_WORDS,
    ENTRY_BYTES,
    NOTICE_WORDS,
    RECORD_BYTES,
    RECORD_WORDS,
    Command,
    CommandKind,
    Counts,
    EndpointRecord,
    Entry,
    Notice,
    NoticeKind,
)
from lanikai.hdl.config import ConfigError, NicConfig, preset

SMALL = preset(NicConfig, "tiny", doorbell="polled", sram_bytes=16384)
LARGE = preset(NicConfig, "lanai4", mtu_bytes=8192 + 128)
CARDS = pytest.mark.parametrize("nic", [SMALL, LARGE], ids=["small", "large"])
WORD = st.integers(0, (1 << 32) - 1)
HALF = st.integers(0, (1 << 16) - 1)
PAIR = st.tuples(HALF, HALF)
ENDPOINT = st.integers(0, (1 << 12) - 1)
ROUTE = st.integers(0, (1 << 48) - 1)


def layout_of(nic: NicConfig, **changes: object) -> AmLayout:
    return AmLayout(nic, VirtualNetworkConfig.for_nic(nic, **changes))


@CARDS
def test_places_in_sram_do_not_overlap(nic):
    layout = layout_of(nic)
    config, packet = layout.config, nic.packet_bytes
    taken = [
        (layout.mailbox, 4 * COMMAND_WORDS),
        (layout.answer, 8),
        (layout.raw_out, 16 + layout.raw_bytes),
        (layout.notice_out, layout.notice_bytes),
        (layout.answer_out, 16 + 8),
        (layout.channel_tables, layout.channel_table_bytes),
    ]
    taken += [(layout.send_buffer(n), packet) for n in range(config.send_buffers)]
    taken += [(layout.receive_buffer(n), packet) for n in range(config.receive_buffers)]
    for frame in range(1, config.frames + 1):
        taken += [(layout.record(frame), RECORD_BYTES), (layout.frame(frame), config.page_bytes)]
    for (start, size), (after, _) in pairwise(sorted(taken)):
        assert start % 8 == 0 and start + size <= after
    start, size = max(taken)
    assert start + size == layout.bytes <= nic.sram_bytes


def test_a_card_of_the_paper_has_room_for_seven_frames_of_8_kb_and_256_nodes():
    config = layout_of(LARGE).config
    assert (config.frames, config.page_bytes, config.nodes_max, config.queue_entries) == (7, 8192, 256, 16)
    assert layout_of(LARGE).slot_bytes == 8192


@CARDS
def test_entries_fill_the_page_behind_its_head_each_at_a_place_of_its_own(nic):
    layout = layout_of(nic)
    entries = layout.config.queue_entries
    places = [layout.entry(queue, n) for queue in Queue for n in range(entries)]
    assert places == list(range(PAGE_HEADER_BYTES, layout.queue_end, ENTRY_BYTES))
    assert layout.queue_end <= layout.config.page_bytes and 4 * (max(PageWord) + 1) <= PAGE_HEADER_BYTES
    assert all(layout.entry(queue, n + entries) == layout.entry(queue, n) for queue in Queue for n in (0, 5))
    slots = [layout.slot(reply=reply, count=n) for reply in (False, True) for n in range(entries)]
    assert [layout.slot_offset(slot) for slot in slots] == list(
        range(0, layout.staging_bytes, layout.slot_bytes)
    )
    assert AM_HEADER_BYTES + 32 + layout.data_bytes <= nic.mtu_bytes


@pytest.mark.parametrize(
    ("nic", "changes", "message"),
    [
        (LARGE.replace(owners=4), {}, r"^NicConfig.owners = 4: virtual networks have a doorbell page"),
        (SMALL.replace(doorbell="queue"), {}, r"^NicConfig.doorbell = 'queue': .* need 'polled'"),
        (SMALL, {"frames": 4}, r"^VirtualNetworkConfig.frames = 4: the card has 4 channels.*at most 3$"),
        (LARGE, {"page_bytes": 4096}, r"page_bytes = 4096: four queues of queue_entries = 16 need 4160$"),
        (SMALL.replace(mtu_bytes=64), {}, r"^NicConfig.mtu_bytes = 64: at least 72: the words"),
        (LARGE, {"nodes_max": 1024}, r"^NicConfig.sram_bytes = 262144: virtual networks need \d+ bytes"),
    ],
)
def test_a_card_that_does_not_do_is_refused(nic, changes, message):
    with pytest.raises(ConfigError, match=message):
        layout_of(nic, **changes)


def test_columns_fit_the_bits_of_a_packet():
    with pytest.raises(ConfigError, match=r"request_channels \+ reply_channels = 33|must be"):
        VirtualNetworkConfig(request_channels=16, reply_channels=17)
    config = VirtualNetworkConfig(request_channels=16, reply_channels=16)
    for column in range(config.columns):
        for void in (False, True):
            assert unpack_channel(pack_channel(column, void=void)) == (column, void)
            assert pack_channel(column, void=void) < 256


def test_scans_are_counted_in_ticks():
    # lanai4 has half-microsecond ticks.
    assert layout_of(LARGE, scan_us=1000).scan_ticks == 2000


@given(
    ENDPOINT,
    ENDPOINT,
    st.sampled_from(MessageKind),
    st.tuples(WORD, WORD, WORD),
    st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255), HALF),
    st.booleans(),
    st.lists(WORD, max_size=8),
)
def test_entries_and_headers_read_back(node, endpoint, kind, wide, narrow, reply, words):
    tag, offset, reference = wide
    status, handler, slot, size = narrow
    entry = Entry(
        node=node,
        endpoint=endpoint,
        kind=kind,
        tag=tag,
        status=status,
        handler=handler,
        reply=reply,
        bytes=size,
        slot=slot,
        offset=offset,
        reference=reference,
        words=tuple(words),
    )
    packed = entry.pack()
    assert len(packed) == 8 + len(words) and all(0 <= word < 1 << 32 for word in packed)
    assert Entry.unpack([*packed, *[7] * (16 - len(packed))]) == entry
    header = AmHeader(
        tag=tag,
        source_endpoint=endpoint,
        kind=kind,
        reply=reply,
        words=len(words),
        handler=handler,
        bytes=size,
        offset=offset,
        reference=reference,
        stamp=reference ^ offset,
        incarnation=size,
        expected=65535 - size,
        reply_tag=tag ^ offset,
    )
    assert 4 * len(header.pack()) == AM_HEADER_BYTES and AmHeader.unpack(header.pack()) == header
    answer = Answer(stamp=tag, incarnation=size, expected=node)
    assert Answer.unpack(answer.pack()) == answer


@given(st.lists(WORD, min_size=16, max_size=16))
def test_an_entry_of_any_words_is_refused_or_one_that_reads_back(words):
    try:
        entry = Entry.unpack(words)
    except ValueError:
        assert words[0] >> 24 & 3 == 3 or words[3] >> 8 & 15 > 8
    else:
        assert Entry.unpack(entry.pack()) == entry


def test_an_entry_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"^entry: 9 words: at most 8$"):
        Entry(node=0, endpoint=0, words=(0,) * 9).pack()
    with pytest.raises(ValueError, match=r"^entry: endpoint = 4096: 0 to 4095$"):
        Entry(node=0, endpoint=4096).pack()


@given(st.integers(0, 1000), st.tuples(*[st.integers(0, 127)] * 4))
def test_a_doorbell_word_says_what_is_new_across_the_wrap(start, steps):
    names = ("requests_posted", "replies_posted", "requests_consumed", "replies_consumed")
    before = Counts(**{name: start * (place + 1) for place, name in enumerate(names)})
    now = Counts(**{name: getattr(before, name) + step for name, step in zip(names, steps, strict=True)})
    assert now.word() < 1 << 31
    assert Counts.unpack(now.word()).since(before) == steps
    assert Counts.unpack(now.word()).since(Counts.unpack(before.word())) == steps


@given(
    ENDPOINT,
    HALF,
    st.tuples(*[WORD] * 5),
    st.tuples(*[PAIR] * 6),
    st.tuples(ROUTE, HALF),
    st.integers(0, 255),
)
def test_records_commands_and_notices_read_back(endpoint, owner, wide, pairs, place, frame):
    record = EndpointRecord(
        endpoint=endpoint,
        owner=owner,
        tag=wide[0],
        send_staging=wide[1],
        receive_staging=wide[2],
        segment=wide[3],
        segment_bytes=wide[4],
        posted=pairs[0],
        taken=pairs[1],
        done=pairs[2],
        returning=pairs[3],
        delivered=pairs[4],
        consumed=pairs[5],
        refused_doorbells=wide[0] ^ wide[1],
        activity=wide[2] ^ wide[3],
    )
    assert len(record.pack()) == RECORD_WORDS and EndpointRecord.unpack(record.pack()) == record
    assert record.counts.word() == Counts.unpack(record.counts.word()).word()
    route, node = place
    command = Command(
        kind=CommandKind.SET_ROUTE,
        frame=frame,
        endpoint=endpoint,
        number=wide[0],
        answer=wide[1],
        page=wide[2],
        record=wide[3],
        node=node,
        route=route,
        length=wide[4],
    )
    assert len(command.pack()) == COMMAND_WORDS and Command.unpack(command.pack()) == command
    notice = Notice(
        kind=NoticeKind.RAW_PACKET,
        endpoint=endpoint,
        node=node,
        length=frame,
        header=route << 80 | wide[0],
    )
    assert len(notice.pack()) == NOTICE_WORDS and Notice.unpack(notice.pack()) == notice


@given(st.integers(1, INCARNATIONS - 1), st.integers(1, (INCARNATIONS - 1) // 2))
def test_incarnations_compare_across_their_wrap_and_skip_the_unknown_one(first, steps):
    later = (first + steps - 1) % (INCARNATIONS - 1) + 1
    assert newer(later, first) and not newer(first, later) and not newer(first, first)
    assert newer(first, UNKNOWN_INCARNATION) and not newer(UNKNOWN_INCARNATION, UNKNOWN_INCARNATION)
    assert next_incarnation(first) not in (first, UNKNOWN_INCARNATION) and newer(
        next_incarnation(first), first
    )
    assert next_incarnation(INCARNATIONS - 1) == 1
