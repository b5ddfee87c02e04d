"""The work queue program of one card: one thing after the other, as the sequential VIA of nagar-thesis-2001 5.3.1."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from lanikai.hdl.config import NicConfig

from ..accesses import AccessList, Why
from ..costs import CostTable
from ..driver_mailbox import DRIVER_CHANNEL, DRIVER_OWNER, DriverMailbox
from ..ports import CardPorts
from ..processor import Processor
from ..program import FirmwareProgram
from .completion import Completions
from .config import WorkQueueConfig
from .costs import WORK_QUEUE_COSTS
from .events import Events, bits, names
from .intake import Intake
from .layout import Layout
from .receiver import Receiver
from .sender import Sender
from .state import PostedQueue, describe
from .transfers import Transfers

__all__ = ["DRIVER_CHANNEL", "DRIVER_OWNER", "WorkQueueProgram"]

EVENTS = ("doorbell", "receive", "completion")
"""Events for which it waits."""


class WorkQueueProgram(FirmwareProgram[WorkQueueConfig]):
    """The control program of `node`; `start` spawns it. The arguments are those of `FirmwareProgram`.

    A message takes the route of its channel's record, which the driver writes, and none of `routes`. A message that
    comes in is dropped, and counted in `drops` by the reason, in these cases:

    - `misrouted`: it is for another node.
    - `unknown`: it is no message.
    - `closed`: it comes for a channel that is not open.
    - `stranger`: it comes from another channel than the one to which this one is connected. VIA is connection-oriented
      (4.1).
    - `no buffer`: it finds no posted descriptor. Delivery is unreliable (4.1.1).

    A message longer than a packet ends with TOO_LONG, as does one longer than the buffer that waits for it.

    - `doing`: its present step in words, nothing while it waits for events.
    - `sent`, `received`: messages ended, well or not.
    - `operations`: host DMAs that were started and waited for, by their kind: `descriptor`, `data`, `list` (data and
      the next descriptor).
    - `advanced_cycle`: the cycle in which it last woke, or ended, took in or dropped a message.

    It waits for the host DMA engine as long as the bus takes. Its waits for the network, and for a completion queue
    that stalls, have no bound. But doorbells are taken meanwhile, and the driver is heard. So no doorbell queue stays
    full, and no write on the host's bus waits for something that only a write behind it can bring.

    Raises ConfigError for a card that lacks something.
    """

    Config = WorkQueueConfig
    default_costs = WORK_QUEUE_COSTS
    speaks = "work queues"

    def __init__(
        self,
        card: CardPorts,
        *,
        node: int,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: WorkQueueConfig | None = None,
        costs: CostTable | None = None,
    ) -> None:
        super().__init__(card, node=node, nic=nic, routes=routes, config=config, costs=costs)
        self.layout = Layout(nic, self.config)
        self.processor = Processor(self.only_processor(), self.costs)
        self.operations: Counter[str] = Counter()
        self.sent = self.received = 0
        self.drops: Counter[str] = Counter()
        self.doing = "starts"
        self.events = Events(self.processor)
        self._doing_before_wait: str | None = None
        self._mailbox = DriverMailbox(
            self.processor, nic, self.layout, meanwhile=self._meanwhile, says=self._say
        )
        self.intake = Intake(self, self._mailbox)
        transfers, completions = Transfers(self), Completions(self, self._mailbox)
        self.receiver = Receiver(self, transfers, completions)
        self._sender = Sender(self, transfers, completions)
        self._queues: dict[tuple[int, bool], PostedQueue] = {}
        self._ready: deque[PostedQueue] = deque()  # queues to send that have descriptors, in turn
        self._write_down()

    async def _meanwhile(self) -> None:
        await self.intake.take_doorbells()

    def _say(self, what: str) -> None:
        """Note a wait that takes long in place of the present step, or with "" its end."""
        if what:
            before = self._doing_before_wait
            self._doing_before_wait = self.doing if before is None else before
            self.doing = what
        elif self._doing_before_wait is not None:
            self.doing, self._doing_before_wait = self._doing_before_wait, None

    @property
    def dropped(self) -> int:
        """Messages dropped, whatever the reason."""
        return self.drops.total()

    @property
    def pending(self) -> int:
        """Messages to send that it knows of, and one more for its present step."""
        waiting = sum(queue.waiting for queue in self._queues.values() if not queue.receive)
        return waiting + (self.doing != "")

    def state(self) -> list[str]:
        """Its present step, its queues and its drops, a line each."""
        return describe(self.node, self.doing, self._queues.values(), self.drops)

    def waiting(self) -> list[str]:
        """Its present step, in a few words; nothing if it waits for events."""
        return [f"node {self.node} {self.doing}"] if self.doing else []

    def start(self) -> None:
        """Spawn the program."""
        self.processor.port.spawn(self._run(), f"work queues[{self.node}]")

    def _write_down(self) -> None:
        """Write the lists that are always the same.

        - `_rest`: look for a doorbell; if there is none wait for events.
        - `_arm`: only wait for them.
        - `_woken`: see what has come, look for a doorbell; if there is none, and a packet, load its header.
        - `_after`: after a message, see whether a packet has come, and look for a doorbell if none has.
        """
        self._rest, self._arm, self._woken, self._after = (AccessList() for _ in range(4))
        self._rung_before = self.intake.look(self._rest)
        self.events.arm(self._rest, *EVENTS)
        self.events.arm(self._arm, *EVENTS)
        self._status = self.events.take(self._woken, *EVENTS)
        self._woken.stop_if(self._status, mask=bits("completion"), value=0, differs=True)
        self._rung = self.intake.look(self._woken)
        self._woken.stop_if(self._status, mask=bits("receive"), value=0)
        self._header = self.receiver.load_header(self._woken)
        self._came = self.events.look(self._after, "receive", "completion")
        self._after.stop_if(self._came, mask=bits("receive", "completion"), value=0, differs=True)
        self._rung_after = self.intake.look(self._after)

    async def _run(self) -> None:
        await self._mailbox.boot()
        await self.receiver.rearm()
        looked = True
        while True:
            if not self._ready:
                looked = await self._wait(looked)
            elif not looked:
                await self.intake.take_doorbells()
                looked = True
            else:
                # One message of each queue in turn.
                queue = self._ready.popleft()
                await self._sender.send(queue)
                self.may_send(queue)
                await self._see()

    async def _wait(self, looked: bool) -> bool:
        """Wait for events and serve them. Returns whether doorbells have been looked for behind that.

        `looked`: they have been looked for already. If there is one it is taken, and nothing waited for.
        """
        self.doing = ""
        first = self._arm if looked else self._rest
        step = self.processor.step("look", 0, accesses=first)
        async with step.then("dispatch", self._woken, after=self.events.port):
            pass
        if first.why is not Why.END:
            await self.intake.take_doorbells(self._rung_before)
            return True
        self.advance()
        seen = names(self._status, *EVENTS)
        if "completion" in seen:
            await self._serve(seen)
        elif self._woken.why is Why.END:
            await self.receiver.take(self._header)
            return False
        elif self._rung["valid"]:
            await self.intake.take_doorbells(self._rung)
            if "receive" in seen:
                await self.receiver.take_next()
                return False
        return True

    async def _see(self) -> None:
        """Serve what has come while a message was sent."""
        async with self.processor.step("look", 0, accesses=self._after):
            pass
        if seen := names(self._came, "receive", "completion"):
            await self._serve(seen)
        elif self._rung_after["valid"]:
            await self.intake.take_doorbells(self._rung_after)

    async def _serve(self, seen: set[str]) -> None:
        """Serve messages that have come in, queues that have failed, doorbells."""
        if "receive" in seen:
            await self.receiver.receive()
        if "completion" in seen:
            await self._mailbox.tell_broken()
        await self.intake.take_doorbells()

    def queue(self, channel: int, *, receive: bool) -> PostedQueue:
        """A queue of a channel, to send or to receive."""
        key = channel, receive
        if key not in self._queues:
            self._queues[key] = PostedQueue(channel, receive=receive)
        return self._queues[key]

    def may_send(self, queue: PostedQueue) -> None:
        """Give a queue that has descriptors to send a turn, behind the others, if it has none yet.

        A queue that is rung while its message is sent has none.
        """
        if queue.waiting and not queue.receive and queue not in self._ready:
            self._ready.append(queue)

    def advance(self) -> None:
        """It has moved something on, in this cycle."""
        self.advanced_cycle = self.processor.port.cycle
