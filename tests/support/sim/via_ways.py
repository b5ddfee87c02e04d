"""Ways to bring about each code of each call of VIPL, on cards in plain Python (`via_card`).

A way is given a `Scene` before anything but two processes has been set up, and returns a coroutine that ends with the
code. `WAYS` has them by call and code. A handle that is none, and a process that is gone, are alike for all calls:
`no_handle`, `gone`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from inspect import signature
from typing import Any

from lanikai.sim.host.errors import MemoryUseError
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import MemAttributes, NetAddress, Quality, Reliability, ViAttributes
from lanikai.sim.host.via.errors import VipError
from lanikai.sim.host.via.requests import ConnectionHandle
from lanikai.sim.host.via.vi import Vi

from .via_card import Net
from .via_processes import End, join, quiet

Call = Coroutine[Any, Any, Any]
Way = Callable[["Scene"], Awaitable[Any]]
MB = 1_000_000


@dataclass
class Scene:
    """Two processes, `a` on node 0 and `b` on node 1, each with memory, a VI that is idle and a completion queue."""

    net: Net
    a: End
    b: End
    queue: Any

    @classmethod
    async def open(cls, net: Net) -> Scene:
        """The processes."""
        a, b = [await End.open(agent) for agent in net.agents]
        return cls(net, a, b, await vipl.VipCreateCQ(a.nic, 4))

    def call(self, name: str, /, **given: Any) -> Call:
        """A call of `a` with arguments that are good for it, but for those that are `given`."""
        a = self.a
        usual = {
            "agent": self.net.agents[0],
            "nic": a.nic,
            "vi": a.vi,
            "queue": self.queue,
            "ptag": a.tag,
            "address": NetAddress(1) if name == "VipNSGetHostByAddr" else a.memory.start,
            "length": 8,
            "attributes": (MemAttributes if "Mem" in name else ViAttributes)(ptag=a.tag),
            "handle": self.handle() if "Connect" in name else a.handle,
            "info_type": vipl.VIP_SMI_AUTODISCOVERY,
            "name": "node1",
            "entries": 4,
            "timeout_ms": 0.01,
            "context": None,
            "handler": print,
            "callback": print,
            "descriptor": a.descriptor(),
            "local": a.address(),
            "remote": self.b.address(),
        }
        wanted = [
            one.name for one in signature(getattr(vipl, name)).parameters.values() if one.default is one.empty
        ]
        return getattr(vipl, name)(**{one: usual[one] for one in wanted} | given)

    def handle(self) -> ConnectionHandle:
        """A handle of a client that there is not: it will never say that it is ready."""
        attributes = ViAttributes(reliability=self.a.vi.attributes.reliability)
        return ConnectionHandle(
            self.a.nic, self.a.address(), 1, self.b.address(), attributes, self.b.vi.channel, 999
        )

    async def told(self) -> Vi:
        """A VI of `a` whose ends the completion queue tells."""
        return await vipl.VipCreateVi(self.a.nic, ViAttributes(ptag=self.a.tag), self.queue, self.queue)

    async def set(self, end: End, **attributes: Any) -> None:
        """Give a VI other attributes."""
        await vipl.VipSetViAttributes(end.vi, ViAttributes(ptag=end.tag, **attributes))

    def meanwhile(self, call: Call) -> None:
        """Have a call made at the same time, however it ends."""

        async def life() -> None:
            with contextlib.suppress(VipError):
                await call

        self.net.world.spawn(life(), "meanwhile")

    async def asked(self, timeout_ms: float = 50) -> ConnectionHandle:
        """The handle of a request of `b`."""

        async def client() -> None:
            await self.net.world.sleep(20_000)
            await vipl.VipConnectRequest(self.b.vi, self.b.address(), self.a.address(), timeout_ms)

        self.meanwhile(client())
        return (await vipl.VipConnectWait(self.a.nic, self.a.address(), 50))[2]

    async def peers(self, timeout_ms: float = 50) -> None:
        """Have both ask for each other; some time passes."""
        for one, other in ((self.a, self.b), (self.b, self.a)):
            await vipl.VipConnectPeerRequest(one.vi, one.address(), other.address(), timeout_ms)
        await self.net.world.sleep(40_000)

    async def pending(self, timeout_ms: float = 50) -> None:
        """Have `a` ask for a peer that there is not."""
        await vipl.VipConnectPeerRequest(self.a.vi, self.a.address(), self.b.address(), timeout_ms)

    def silence(self) -> None:
        """No agent hears of another from now on."""
        self.net.lose = lambda source, target: True


def given(name: str, /, **changes: Any) -> Way:
    """The call with these arguments."""
    return lambda scene: scene.call(name, **changes)


def after(name: str, before: Callable[[Scene], Awaitable[Any]], /, **changes: Any) -> Way:
    """The call behind something else."""

    async def way(scene: Scene) -> Any:
        await before(scene)
        return await scene.call(name, **changes)

    return way


def built(name: str, make: Callable[[Scene], Awaitable[dict[str, Any]]]) -> Way:
    """The call with arguments that have to be made first."""

    async def way(scene: Scene) -> Any:
        return await scene.call(name, **await make(scene))

    return way


def twice(name: str, /, **changes: Any) -> Way:
    """The call for the second time."""
    return after(name, lambda scene: scene.call(name, **changes), **changes)


def until_none_is_left(name: str) -> Way:
    """The call over and over."""

    async def way(scene: Scene) -> Any:
        for _ in range(100):
            await scene.call(name)

    return way


def no_handle(name: str) -> Way:
    """The call with something else for its handle."""

    async def way(scene: Scene) -> Any:
        (handle, *_) = signature(getattr(vipl, name)).parameters
        return await scene.call(name, **{handle: None})

    return way


def gone(name: str) -> Way:
    """The call of a process that is no more."""

    async def way(scene: Scene) -> Any:
        call = scene.call(name)
        await scene.net.agents[0].kill(scene.a.nic)
        return await call

    return way


async def connected(scene: Scene) -> None:
    """`a` and `b` are."""
    await join(scene.net, scene.a, scene.b)


async def posted(scene: Scene) -> None:
    """A descriptor to receive is on `a`'s queue."""
    await scene.call("VipPostRecv")


async def handle_whose_client_waits_no_more(scene: Scene) -> dict[str, Any]:
    handle = await scene.asked(0.1)
    await scene.net.world.sleep(40_000)
    return {"handle": handle}


async def handle_of_another_level(scene: Scene) -> dict[str, Any]:
    await scene.set(scene.b, reliability=Reliability.RELIABLE_DELIVERY)
    return {"handle": await scene.asked()}


async def handle_of_shorter_messages(scene: Scene) -> dict[str, Any]:
    await scene.set(scene.b, most_bytes=9)
    return {"handle": await scene.asked()}


def rate(mb_per_s: int) -> dict[str, Any]:
    """Attributes with a rate. A card promises 120 MB/s in all."""
    return {"quality": Quality(bytes_per_s=mb_per_s * MB, message_bytes=4096)}


async def handle_of_much(scene: Scene) -> dict[str, Any]:
    """Each end may have 80 MB/s, and no card 160."""
    for end in (scene.a, scene.b):
        await scene.set(end, **rate(80))
    return {"handle": await scene.asked()}


async def too_much(scene: Scene) -> None:
    await scene.set(scene.a, **rate(1000))


async def peers_of_different_levels(scene: Scene) -> None:
    await scene.set(scene.b, reliability=Reliability.RELIABLE_DELIVERY)
    await scene.peers()


async def peers_of_different_lengths(scene: Scene) -> None:
    await scene.set(scene.b, most_bytes=9)
    await scene.peers()


async def peers_of_much(scene: Scene) -> None:
    for end in (scene.a, scene.b):
        await scene.set(end, **rate(80))
    await scene.peers()


async def silent_peer(scene: Scene) -> None:
    scene.silence()
    await scene.pending()
    await scene.net.world.sleep(200_000)


async def peer_that_comes_too_late(scene: Scene) -> None:
    await scene.pending(0.1)
    await scene.net.world.sleep(40_000)


async def dead_ring(scene: Scene) -> None:
    """The bus has refused the completion queue's memory, and the agent has heard of it."""
    card, number = scene.net.cards[0], scene.queue.kit.number
    card.rings[number].dead = True
    card.sram[card.layout.broken] = 1 << number
    card.says = True
    card._raise()
    await quiet(scene.net)
    card.sram[card.layout.broken] = 0


async def rejected(scene: Scene) -> Any:
    async def server() -> None:
        _, _, handle = await vipl.VipConnectWait(scene.b.nic, scene.b.address(), 50)
        await vipl.VipConnectReject(handle)

    scene.meanwhile(server())
    await scene.net.world.sleep(20_000)
    return await scene.call("VipConnectRequest", timeout_ms=50)


async def no_answer(scene: Scene) -> None:
    scene.meanwhile(vipl.VipConnectWait(scene.b.nic, scene.b.address(), 50))
    await scene.net.world.sleep(20_000)


async def full_memory(scene: Scene) -> None:
    try:
        while True:
            scene.a.nic.allocate(4096)
    except MemoryUseError:
        pass


async def waiter_of_the_queue(scene: Scene) -> None:
    scene.meanwhile(scene.call("VipCQWait", timeout_ms=10))
    await scene.net.world.sleep(2000)


def waiter(name: str) -> Way:
    """Somebody waits for a work queue, on which a descriptor is."""

    async def way(scene: Scene) -> None:
        if name == "Recv":
            await connected(scene)
            await posted(scene)
        else:
            await sent_and_not_ended(scene)
        scene.meanwhile(scene.call(f"Vip{name}Wait", timeout_ms=0.5))
        await scene.net.world.sleep(1000)

    return way


async def new_rate_without_an_answer(scene: Scene) -> Any:
    await connected(scene)
    scene.silence()
    return await scene.call("VipSetViAttributes", attributes=ViAttributes(ptag=scene.a.tag, **rate(1)))


async def new_rate_too_high_for_the_other(scene: Scene) -> Any:
    await scene.set(scene.b, **rate(80))
    await connected(scene)
    return await scene.call("VipSetViAttributes", attributes=ViAttributes(ptag=scene.a.tag, **rate(80)))


async def new_rate_at_the_end(scene: Scene) -> Any:
    await connected(scene)
    scene.silence()

    async def later() -> None:
        await scene.net.world.sleep(5000)
        await scene.call("VipDisconnect")

    scene.meanwhile(later())
    return await scene.call("VipSetViAttributes", attributes=ViAttributes(ptag=scene.a.tag, **rate(1)))


async def request_that_is_ended(scene: Scene) -> Any:
    await no_answer(scene)

    async def later() -> None:
        await scene.net.world.sleep(20_000)
        await scene.call("VipDisconnect")

    scene.meanwhile(later())
    return await scene.call("VipConnectRequest", timeout_ms=50)


async def other_tag(scene: Scene) -> dict[str, Any]:
    await posted(scene)
    return {"attributes": ViAttributes(ptag=await vipl.VipCreatePtag(scene.a.nic))}


async def told_vi(scene: Scene) -> dict[str, Any]:
    return {"vi": await scene.told()}


async def foreign_queue(scene: Scene) -> dict[str, Any]:
    return {"send_completions": await vipl.VipCreateCQ(scene.b.nic, 4)}


async def lost_channel(scene: Scene) -> None:
    """The card has the VI's channel no more, and nobody in the host knows."""
    await connected(scene)
    del scene.net.cards[0].channels[scene.a.vi.channel]


async def sent_and_not_ended(scene: Scene) -> None:
    """The card has not begun with what `a` has posted."""
    await connected(scene)
    scene.net.cards[0]._kick = lambda number: None
    await scene.call("VipPostSend")


async def peer_that_is_ended(scene: Scene) -> None:
    await scene.pending()
    await scene.call("VipDisconnect")


async def silence(scene: Scene) -> None:
    scene.silence()


async def silent_client(scene: Scene) -> Any:
    """It asks, and is not heard of again."""
    handle = await scene.asked()
    scene.silence()
    return await scene.call("VipConnectAccept", handle=handle)


async def rejected_handle(scene: Scene) -> dict[str, Any]:
    handle = await scene.asked()
    await scene.call("VipConnectReject", handle=handle)
    return {"handle": handle}


async def flushed(scene: Scene) -> None:
    """Descriptors of `a` have ended with their connection."""
    await sent_and_not_ended(scene)
    await posted(scene)
    await scene.call("VipDisconnect")


def posted_twice(name: str) -> Way:
    """The same descriptor again."""

    async def way(scene: Scene) -> Any:
        descriptor = scene.a.descriptor()
        await scene.call(name, descriptor=descriptor)
        return await scene.call(name, descriptor=descriptor)

    return way


async def new_rate_too_high_here(scene: Scene) -> Any:
    await connected(scene)
    return await scene.call("VipSetViAttributes", attributes=ViAttributes(ptag=scene.a.tag, **rate(1000)))


async def rejected_for_its_rate(scene: Scene) -> Any:
    """The server cannot accept it for its own card, and rejects it then."""
    for end in (scene.a, scene.b):
        await scene.set(end, **rate(80))

    async def server() -> None:
        _, _, handle = await vipl.VipConnectWait(scene.b.nic, scene.b.address(), 50)
        try:
            await vipl.VipConnectAccept(handle, scene.b.vi)
        except VipError:
            await vipl.VipConnectReject(handle)

    scene.meanwhile(server())
    await scene.net.world.sleep(20_000)
    return await scene.call("VipConnectRequest", timeout_ms=50)
