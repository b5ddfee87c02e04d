"""The words of VIA: descriptors as the specification lays them out, records of VIs, packets, the SRAM."""

import random
import struct
from itertools import pairwise

import pytest
from lanikai.firmware.via.config import DESIGNS, ViaConfig, design
from lanikai.firmware.via.descriptor import Control, Descriptor, Op, Segment, SlotForm
from lanikai.firmware.via.layout import Reliability, ViaLayout, ViRecord
from lanikai.firmware.via.wire import PacketOp, ViaHeader, next_number, pack_sequence, sender_channel
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

SMALL, LARGE = SlotForm(1, 4), SlotForm(4, 128)
OWNERS = {"owners": 8, "completion_queues": 8, "regions": 64, "receive_doorbells": "merged"}


def test_a_descriptor_stands_as_the_specification_lays_it_out():
    """Control segment of 32 bytes, address segment, data segments of 16, at the offsets of the specification."""
    found = Descriptor(
        op=Op.RDMA_WRITE,
        segments=(Segment(0x11223344, 0x5566, 77),),
        remote=Segment(0x99AABBCC, 0xDDEE),
        immediate=b"word",
        fence=True,
    ).pack(SMALL)
    assert len(found) == SMALL.slot_bytes == 64
    next_, handle, count, control, reserved, immediate, length, status = struct.unpack_from(
        "<QIHHIIII", found
    )
    assert (next_, handle, count, status) == (0, 0, 2, 0)
    assert control == 1 | 1 << 2 | 1 << 3
    assert immediate == int.from_bytes(b"word", "little") and reserved == 4
    assert length == 77
    assert struct.unpack_from("<QII", found, 32) == (0x99AABBCC, 0xDDEE, 0)
    assert struct.unpack_from("<QII", found, 48) == (0x11223344, 0x5566, 77)


def test_long_immediate_data_stand_behind_the_control_segment():
    found = Descriptor(immediate=bytes(range(128)), segments=(Segment(4096, 1, 8),)).pack(LARGE)
    assert found[32:160] == bytes(range(128))
    assert struct.unpack_from("<QII", found, 160) == (4096, 1, 8)
    assert LARGE.slot_bytes == 256 and LARGE.slot_bytes % 64 == 0


@pytest.mark.parametrize("form", [SMALL, SlotForm(3, 4), LARGE, SlotForm(16, 64)])
def test_descriptors_come_back_from_their_bytes(form):
    rng = random.Random(f"descriptors {form}")
    for _ in range(200):
        op = rng.choice((Op.SEND, Op.RDMA_WRITE, Op.RDMA_READ))
        segments = tuple(
            Segment(rng.getrandbits(64), rng.getrandbits(32), rng.randrange(4000))
            for _ in range(rng.randint(0, form.data_segments))
        )
        remote = None if op == Op.SEND else Segment(rng.getrandbits(64), rng.getrandbits(32))
        immediate = None
        if op != Op.RDMA_READ and rng.random() < 0.5:
            immediate = rng.randbytes(4 * rng.randint(1, form.immediate_bytes // 4))
        whole = Descriptor(
            op=op,
            segments=segments,
            remote=remote,
            immediate=immediate,
            fence=rng.random() < 0.5,
            notify=rng.random() < 0.5,
            length=sum(one.bytes for one in segments),
            segment_count=len(segments) + (remote is not None),
        )
        slot = whole.pack(form).ljust(form.slot_bytes, b"\xff")
        assert len(slot) == form.slot_bytes
        assert Descriptor.unpack(slot, form) == whole
        assert whole.refusal(form, receive=False) == CompletionStatus.OK
        assert (whole.refusal(form, receive=True) == CompletionStatus.OK) == (op == Op.SEND)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"op": Op.NONE}, "FORMAT"),
        ({"reserved_bits": 1 << 9}, "FORMAT"),
        ({"segment_count": 0}, "TOO_LONG"),
        ({"segment_count": 2}, "FORMAT"),
        ({"segment_count": 0xFFFF}, "FORMAT"),
        ({"op": Op.RDMA_WRITE}, "OK"),  # its segment is taken for the address
        ({"op": Op.RDMA_READ, "immediate": b"abcd"}, "FORMAT"),
        ({"op": Op.RDMA_WRITE, "segments": (), "length": 0}, "FORMAT"),
        ({"length": 99}, "TOO_LONG"),
        ({"segments": (Segment(0, 1, 1 << 16),)}, "TOO_LONG"),
        ({"segments": (Segment(0, 1, (1 << 32) - 1),)}, "TOO_LONG"),
        ({"immediate": b""}, "OK"),  # ImmediateData is always four bytes
    ],
)
def test_what_makes_no_sense_is_refused(changes, status):
    one = Descriptor(**({"segments": (Segment(4096, 1, 100),), "length": None} | changes))
    if one.op == Op.RDMA_WRITE and one.segments:
        one = Descriptor(op=Op.RDMA_WRITE, segments=one.segments, length=0, remote=None)
    seen = Descriptor.unpack(one.pack(SMALL).ljust(SMALL.slot_bytes, b"\0"), SMALL)
    assert seen.refusal(SMALL, receive=False).name == status


@pytest.mark.parametrize(("size", "good"), [(0, False), (2, False), (4, True), (128, True), (132, False)])
def test_immediate_data_are_whole_words_and_fit(size, good):
    slot = bytearray(Descriptor(immediate=bytes(4)).pack(LARGE).ljust(LARGE.slot_bytes, b"\0"))
    slot[16:20] = size.to_bytes(4, "little")
    refused = Descriptor.unpack(bytes(slot), LARGE).refusal(LARGE, receive=False)
    assert refused == (CompletionStatus.OK if good else CompletionStatus.FORMAT)


def test_any_bytes_are_a_descriptor_or_refused_never_an_error():
    rng = random.Random(15)
    for form in (SMALL, LARGE):
        for _ in range(500):
            seen = Descriptor.unpack(rng.randbytes(form.slot_bytes), form)
            seen.refusal(form, receive=rng.random() < 0.5)


def test_what_does_not_fit_a_slot_is_an_error():
    with pytest.raises(ValueError, match=r"^descriptor: 2 data segments; at most 1$"):
        Descriptor(segments=(Segment(0, 0, 0),) * 2).pack(SMALL)
    with pytest.raises(ValueError, match=r"^descriptor: 8 bytes of immediate data; at most 4$"):
        Descriptor(immediate=bytes(8)).pack(SMALL)
    with pytest.raises(ValueError, match=r"^descriptor: a field does not fit: "):
        Descriptor(segments=(Segment(1 << 64, 0, 0),)).pack(SMALL)


def test_records_come_back_from_their_words():
    rng = random.Random(3)
    for _ in range(200):
        queue = lambda: rng.choice((None, rng.randrange(64)))  # noqa: E731
        record = ViRecord(
            send_ring=rng.getrandbits(32),
            receive_ring=rng.getrandbits(32),
            send_completions=queue(),
            receive_completions=queue(),
            send_shadow=rng.getrandbits(20),
            receive_shadow=rng.getrandbits(20),
            route=rng.getrandbits(48),
            node=rng.randrange(1024),
            channel=rng.randrange(1024),
            connection=rng.getrandbits(16),
            reliability=rng.choice(list(Reliability)),
            rdma_write=rng.random() < 0.5,
            rdma_read=rng.random() < 0.5,
            most_bytes=rng.getrandbits(16),
            vtick=rng.getrandbits(32),
        )
        words = list(record.words())
        assert all(0 <= word < 1 << 32 for word in words)
        assert ViRecord.unpack(words) == record
        words[ViRecord.OPEN_WORD] &= 0x7FFFFFFF
        assert ViRecord.unpack(words) is None


def test_headers_come_back_from_their_words():
    rng = random.Random(4)
    for _ in range(200):
        header = ViaHeader(
            op=rng.choice(list(PacketOp)),
            last=rng.random() < 0.5,
            status=rng.getrandbits(5),
            immediate_bytes=4 * rng.randint(0, 32),
            connection=rng.getrandbits(16),
            number=rng.getrandbits(16),
            tag=rng.getrandbits(16),
            address=rng.getrandbits(32),
            length=rng.getrandbits(16),
            offset=rng.getrandbits(16),
        )
        assert all(0 <= word < 1 << 32 for word in header.words())
        assert ViaHeader.unpack(header.words()) == header
    assert next_number(0xFFFF) == 0
    assert sender_channel(pack_sequence(1023, 77)) == 1023


def test_508_declared_vis_fit_the_card_of_the_lanai7():
    """508 VIs, the agent's channel, four processes; packets of 16 KB in one piece as in table 5.1, too."""
    for extra in ({}, {"mtu_bytes": 16384 + 64}):
        nic = preset(NicConfig, "lanai7", **OWNERS, **extra)
        assert nic.channels >= 509
        for name in DESIGNS:
            more = {} if name == "svia" else {"send_buffers": 2, "receive_buffers": 3}
            layout = ViaLayout(nic, design(name, **more))
            assert layout.bytes <= nic.sram_bytes == 1 << 18


def test_no_two_places_of_the_sram_overlap():
    nic = preset(
        NicConfig, "tiny", **OWNERS | {"owners": 2, "regions": 4, "completion_queues": 4}, shadow_windows=True
    )
    config = ViaConfig(
        design="parallel", data_segments=2, immediate_bytes=8, receive_buffers=2, descriptors="shadow"
    )
    layout = ViaLayout(nic, config)
    slot = layout.form.slot_bytes
    places = [
        (layout.mailbox, 128),
        (layout.broken, 8),
        (layout.control_route, 8),
        (layout.control_out, 64),
        (layout.notices, 12),
        (layout.notice_out, 80),
        (layout.probe, 4),
        *((layout.region_flag(i), 4) for i in range(nic.regions)),
        *((layout.record(i), 40) for i in range(nic.channels)),
        *((layout.staged(i, receive=way), slot) for i in range(nic.channels) for way in (False, True)),
        (layout.send_buffer(), layout.buffer_bytes),
        *((layout.receive_buffer(i), layout.buffer_bytes) for i in range(2)),
        *((layout.window(i), 1024) for i in range(2)),
    ]
    places.sort()
    for (start, size), (after, _) in pairwise(places):
        assert start + size <= after
    assert all(at % 16 == 0 for at, size in places if size in (slot, layout.buffer_bytes))
    assert places[-1][0] + 1024 == layout.mailbox + layout.bytes


@pytest.mark.parametrize(
    ("changes", "config", "message"),
    [
        ({"regions": 0}, {}, "NicConfig.regions = 0: at least 1 for VIA"),
        ({"channels": 1}, {}, "NicConfig.channels = 1: at least 2 for VIA"),
        (
            {"receive_doorbells": "none"},
            {},
            "NicConfig.receive_doorbells = 'none': VIA on a card with processors = 1 needs 'merged'",
        ),
        (
            {"host_dma_queue_entries": 0},
            {"descriptors": "tailgated"},
            "NicConfig.host_dma_queue_entries = 0: at least 2 for descriptors = 'tailgated', which come in a list "
            "with data",
        ),
        (
            {},
            {"descriptors": "shadow"},
            "NicConfig.shadow_windows = False: descriptors = 'shadow' needs them",
        ),
        (
            {"mtu_bytes": 128},
            {"immediate_bytes": 128},
            "NicConfig.mtu_bytes = 128: at least 144 for VIA with immediate_bytes = 128",
        ),
        (
            {"sram_bytes": 1 << 17},
            {"data_segments": 8},
            "NicConfig.sram_bytes = 131072: VIA needs 229984 bytes; fewer channels, data segments or buffers would fit",
        ),
    ],
)
def test_a_card_that_lacks_something_is_refused(changes, config, message):
    with pytest.raises(ConfigError) as error:
        ViaLayout(preset(NicConfig, "lanai7", **OWNERS | changes), ViaConfig(**config))
    assert str(error.value) == message


def test_designs_have_names():
    assert design("svia").design == "sequential" and design("svia").order == "arrival"
    assert design("pvia").design == design("qosvia").design == "parallel"
    assert design("qosvia", data_segments=3).order == "virtual_clock"
    with pytest.raises(ConfigError, match=r"^unknown VIA design 'via'; valid designs: svia, pvia, qosvia$"):
        design("via")
    with pytest.raises(
        ConfigError,
        match=r"^ViaConfig: order = 'wf2q': the sequential design serves in the order of arrival; design = 'parallel' "
        "has others$",
    ):
        ViaConfig(order="wf2q")


def test_control_bits_are_the_specification_s():
    assert (Op.SEND, Op.RDMA_WRITE, Op.RDMA_READ) == (0, 1, 2)
    assert (Control.IMMEDIATE, Control.FENCE) == (4, 8)
