"""Shadows of descriptors: what they hold, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.firmware.via.shadow import SHADOW_SLOTS, pack_shadow, unpack_shadow

WORDS = st.integers(0, (1 << 32) - 1)


@given(
    st.one_of(st.none(), st.tuples(WORDS, st.integers(0, 65535), st.integers(0, 65535))), WORDS, st.booleans()
)
def test_a_plain_descriptor_comes_back_and_no_other_has_its_number(segment, index, fence):
    descriptor = Descriptor(segments=() if segment is None else (Segment(*segment),), fence=fence)
    words = pack_shadow(descriptor, index)
    assert words is not None and all(0 <= word < 1 << 32 for word in words)
    found = unpack_shadow(words, index)
    assert found is not None and (found.segments, found.fence) == (descriptor.segments, fence)
    assert unpack_shadow(words, index + SHADOW_SLOTS) is None


@pytest.mark.parametrize(
    "descriptor",
    [
        Descriptor(segments=(Segment(0, 1, 4),) * 2),
        Descriptor(segments=(Segment(0, 1, 4),), immediate=b"1234"),
        Descriptor(segments=(Segment(0, 1, 4),), op=Op.RDMA_WRITE, remote=Segment(0, 1)),
        Descriptor(segments=(Segment(1 << 32, 1, 4),)),
        Descriptor(segments=(Segment(0, 1 << 16, 4),)),
        Descriptor(segments=(Segment(0, 1, 4),), length=5),
        Descriptor(segments=(Segment(0, 1, 4),), segment_count=2),
        Descriptor(segments=(Segment(0, 1, 4),), reserved_bits=1 << 6),
    ],
)
def test_other_descriptors_have_no_shadow(descriptor):
    assert pack_shadow(descriptor, 0) is None


@given(st.lists(WORDS, min_size=4, max_size=4), st.integers(0, 65535))
def test_whatever_a_process_writes_is_a_plain_descriptor_or_none(words, index):
    words[3] = index + 1
    found = unpack_shadow(words, index)
    assert found is None or (found.op is Op.SEND and len(found.segments) <= 1 and found.immediate is None)
