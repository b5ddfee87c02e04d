"""Host memory of endpoints: pages, records, staging areas."""

from __future__ import annotations

from lanikai.firmware.am.layout import AmLayout
from lanikai.firmware.am.words import RECORD_BYTES

from ..memory import PAGE_BYTES, Buffer, PageAllocator

__all__ = ["EndpointMemory", "EndpointMemoryPool"]


class EndpointMemory:
    """Memory of one endpoint: its page, its record, and its staging areas to send and to receive."""

    def __init__(self, page: Buffer, record: Buffer, send_staging: Buffer, receive_staging: Buffer) -> None:
        self.page, self.record = page, record
        self.send_staging, self.receive_staging = send_staging, receive_staging


class EndpointMemoryPool:
    """Gives endpoints their memory, and takes it back. Records share pages: they are small, and the driver's alone."""

    def __init__(self, pages: PageAllocator, layout: AmLayout) -> None:
        self._pages, self._layout = pages, layout
        self._records: list[Buffer] = []
        self._used = 0

    def take(self) -> EndpointMemory:
        """Memory for an endpoint, all zeroes. Raises MemoryUseError if there is not enough; then none is taken."""
        sizes = (self._layout.config.page_bytes, self._layout.staging_bytes, self._layout.staging_bytes)
        taken: list[Buffer] = []
        try:
            for size in sizes:
                taken.append(self._pages.allocate(size))
            record = self._take_record()
        except Exception:
            for buffer in taken:
                self._pages.release(buffer)
            raise
        # Staging slots are written before they are read; a page must begin empty, whoever had the memory before.
        taken[0].data[:] = 0
        record.data[:] = 0
        return EndpointMemory(taken[0], record, taken[1], taken[2])

    def give_back(self, memory: EndpointMemory) -> None:
        """Take an endpoint's memory back, which the card uses no more."""
        for buffer in (memory.page, memory.send_staging, memory.receive_staging):
            self._pages.release(buffer)
        self._records.append(memory.record)
        self._used -= 1
        if not self._used:
            for record in self._records:
                if record.start % PAGE_BYTES == 0:
                    self._pages.release(record)
            self._records = []

    def _take_record(self) -> Buffer:
        if not self._records:
            page = self._pages.allocate(PAGE_BYTES)
            self._records = [
                Buffer(page.start + at, RECORD_BYTES, page.data[at : at + RECORD_BYTES])
                for at in reversed(range(0, PAGE_BYTES, RECORD_BYTES))
            ]
        self._used += 1
        return self._records.pop()
