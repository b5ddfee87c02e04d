"""Pages handed out and taken back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.host.errors import MemoryUseError
from lanikai.sim.host.memory import PAGE_BYTES, PageAllocator


@given(
    st.lists(st.one_of(st.integers(0, 20000), st.just("free")), max_size=30),
    st.randoms(use_true_random=False),
)
def test_buffers_never_overlap_and_all_comes_back(steps, rng) -> None:
    memory = np.zeros(32 * PAGE_BYTES, np.uint8)
    pages = PageAllocator(memory)
    held = []
    for step in steps:
        if step == "free":
            if held:
                pages.release(held.pop(rng.randrange(len(held))))
            continue
        try:
            buffer = pages.allocate(step)
        except MemoryUseError:
            assert step > 0 and pages.free_bytes < 31 * PAGE_BYTES
            continue
        assert buffer.start % PAGE_BYTES == 0 and buffer.start >= PAGE_BYTES
        assert buffer.start + buffer.length <= len(memory) and len(buffer.data) == step
        assert not any(buffer.overlaps(other) for other in held)
        held.append(buffer)
    for buffer in held:
        pages.release(buffer)
    assert pages.free_bytes == 31 * PAGE_BYTES
    pages.allocate(31 * PAGE_BYTES)  # one run again


def test_a_buffer_is_the_memory_itself() -> None:
    memory = np.zeros(3 * PAGE_BYTES, np.uint8)
    buffer = PageAllocator(memory).allocate(10)
    buffer.write(b"abc", 4)
    assert memory[buffer.start + 4 : buffer.start + 7].tobytes() == b"abc"
    memory[buffer.start] = 9
    assert buffer.read(2) == b"\x09\x00" and buffer.read(3, 4) == b"abc" and len(buffer.read()) == 10


def test_errors_say_what_is_there() -> None:
    pages = PageAllocator(np.zeros(4 * PAGE_BYTES, np.uint8))
    buffer = pages.allocate(5000)
    message = (
        "no room for 5000 bytes of DMA-able memory: the largest free run has 4096 bytes, "
        "the host 16384 in all"
    )
    with pytest.raises(MemoryUseError) as caught:
        pages.allocate(5000)
    assert str(caught.value) == message
    with pytest.raises(MemoryUseError, match=r"^a buffer of -1 bytes: 0 or more$"):
        pages.allocate(-1)
    with pytest.raises(MemoryUseError, match=r"^3 bytes at 4998 do not fit a buffer of 5000 bytes$"):
        buffer.write(b"abc", 4998)
    pages.release(buffer)
    with pytest.raises(
        MemoryUseError, match=r"^memory at 0x1000 was not allocated here, or is free already$"
    ):
        pages.release(buffer)
