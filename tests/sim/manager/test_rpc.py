"""Calls alone: which messages are served that come twice, late, or from a manager's former self."""

from __future__ import annotations

from lanikai.sim.manager.rpc import Calls
from lanikai.sim.manager.wire import Answer, Envelope, Kind, Reply, Status
from support.firmware.scheduler import World


class Node:
    """`Calls` of node 0 that serve at once.

    - `served`: (sequence, incarnation).
    - `replies`: the replies that went out.
    - `restarted`: nodes that were seen in a new incarnation, which takes `restart_cycles` to deal with.
    """

    def __init__(self, restart_cycles: int = 1) -> None:
        self.world = World()
        self.served: list[tuple[int, int]] = []
        self.replies: list[tuple[Reply, int]] = []
        self.restarts: list[int] = []
        self._restart_cycles = restart_cycles
        self.calls = Calls(
            self.world,
            node=0,
            post=self,
            serve=self._serve,
            restarted=self._restarted,
            answer_cycles=100,
            tries=2,
        )

    async def send(self, node: int, message: bytes) -> None:
        envelope = Envelope.unpack(message)
        self.replies.append((envelope.reply, envelope.sequence))

    async def _serve(self, call: Envelope) -> Answer:
        self.served.append((call.sequence, call.incarnation))
        return Answer(status=Status.OK)

    async def _restarted(self, node: int) -> None:
        self.restarts.append(node)
        await self.world.sleep(self._restart_cycles)

    async def take(self, sequence: int, incarnation: int, kind: Kind = Kind.STAND) -> None:
        """A call of node 1, and time to serve it."""
        call = Envelope(kind=kind, reply=Reply.CALL, sender=1, incarnation=incarnation, sequence=sequence)
        await self.calls.take(call.pack())
        await self.world.sleep(10)


def test_each_call_is_served_once_and_an_older_one_never():
    node = Node()

    async def main() -> None:
        for sequence in (1, 1, 2, 1, 2):
            await node.take(sequence, 5)

    node.world.run(main())
    assert node.served == [(1, 5), (2, 5)]
    assert node.replies == [(Reply.ANSWER, 1), (Reply.ANSWER, 1), (Reply.ANSWER, 2), (Reply.ANSWER, 2)]


def test_a_former_self_is_not_served_whatever_it_calls():
    """Its calls to a master and those of its own master are counted apart, its incarnations are not."""
    node = Node()

    async def main() -> None:
        await node.take(7, 5)
        await node.take(1, 9)
        await node.take(8, 5)
        await node.take(1, 5, Kind.VOTE)
        await node.take(1, 9, Kind.VOTE)

    node.world.run(main())
    assert node.served == [(7, 5), (1, 9), (1, 9)] and node.restarts == [1]


def test_a_call_that_is_given_up_before_its_turn_is_not_served_after_a_newer_one():
    """The holdings of a manager's former self are taken back before its first call is served. If that takes longer than
    the caller waits, its next call comes meanwhile."""
    node = Node(restart_cycles=1000)

    async def main() -> None:
        await node.take(1, 5)
        await node.take(1, 9)
        await node.take(2, 9)
        await node.world.sleep(2000)

    node.world.run(main())
    assert node.served == [(1, 5), (2, 9)] and node.replies == [(Reply.ANSWER, 1), (Reply.ANSWER, 2)]


def test_a_manager_that_was_met_and_calls_in_a_later_incarnation_has_been_started_again():
    node = Node()

    async def main() -> None:
        node.calls.met(1, 5)
        node.calls.met(1, 9)  # known already: only a call says that its former self is gone
        await node.take(1, 9)

    node.world.run(main())
    assert node.restarts == [1] and node.served == [(1, 9)]
