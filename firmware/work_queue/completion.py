"""The ends of messages, told to their processes."""

from __future__ import annotations

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..accesses import AccessList
from ..completion_post import CompletionPost
from ..driver_mailbox import DriverMailbox
from .context import WorkQueueContext
from .layout import DESCRIPTOR_BYTES, STATUS_OFFSET, ChannelRecord, pack_descriptor_number
from .state import PostedQueue

__all__ = ["Completions"]


class Completions:
    """Tells processes of the ends of their messages, by the completion unit."""

    def __init__(self, program: WorkQueueContext, mailbox: DriverMailbox) -> None:
        self._program, self._mailbox = program, mailbox

    def post(
        self, queue: PostedQueue, record: ChannelRecord, index: int, size: int, status: CompletionStatus
    ) -> CompletionPost:
        """The end of a message: into its descriptor, and into the queue's completion queue."""
        ring = record.receive_ring if queue.receive else record.send_ring
        place = DESCRIPTOR_BYTES * (index % self._program.config.queue_entries)
        return CompletionPost(
            ring + place + STATUS_OFFSET,
            channel=queue.channel,
            number=pack_descriptor_number(index, receive=queue.receive),
            fields={
                "bytes": size,
                "status": status,
                "queue": record.receive_completions if queue.receive else record.send_completions,
                "entry": 1,
            },
        )

    def write_down(self, post: CompletionPost, accesses: AccessList) -> None:
        """Post behind these accesses, unless the unit is busy: then the list ends."""
        post.look(self._program.processor, accesses)
        post.write(accesses)

    async def end(self, post: CompletionPost) -> None:
        """See to a post that has been carried out, that has found the unit busy, or that has yet to begin."""
        if not post.begun:
            accesses = AccessList()
            self.write_down(post, accesses)
            async with self._program.processor.step("complete", 0, accesses=accesses):
                pass
        if post.held:
            await self._mailbox.until_free("COMPLETION_POST")
            await self._mailbox.write(post, "complete")
        self._program.advance()
