"""The ports of admission's coroutines: agents that send to each other, and bounds of their waits."""

from __future__ import annotations

import asyncio

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.packet import Kind
from lanikai.sim.admission.messages import Control
from lanikai.sim.admission.rtl import INBOX_PACKETS, SEND_CYCLES, SimulatedRouterPort

ROUTER = RouterConfig(link=LinkConfig(flit_bits=128, vls=16, hop_bits=3), ports=3, management=True)


class Clock:
    """Time that passes as coroutines sleep."""

    def __init__(self):
        self.cycle = 0

    async def sleep(self, cycles):
        end = self.cycle + cycles
        while self.cycle < end:
            self.cycle += 1
            await asyncio.sleep(0)

    def flag(self):
        return asyncio.Event()


class Agent:
    """A router's agent port: a packet to be sent, a packet that has come, and nothing between it and its `peer`."""

    def __init__(self, clock):
        self.clock, self.peer = clock, None
        self.sending, self.received = None, None

    @property
    def pending(self):
        if self.peer is not None:
            self.peer.leave()
        return self.received is not None

    def leave(self):
        if self.peer is not None and self.sending is not None and self.peer.received is None:
            self.peer.received, self.sending = self.sending, None

    async def read(self, name):
        await self.clock.sleep(1)
        self.leave()
        return {"busy": self.sending is not None} if name == "SEND" else {"valid": 0}

    async def receive(self):
        await self.clock.sleep(1)
        flits, self.received = self.received or [], None
        return flits

    async def send(self, flits):
        while (await self.read("SEND"))["busy"]:
            pass
        self.sending = flits


def packet(number):
    return Control(kind=Kind.PROBE, source=1, destination=2, flow=number, incarnation=0, units=1, peak=1)


@pytest.fixture
def two():
    clock = Clock()
    agents = [Agent(clock), Agent(clock)]
    agents[0].peer, agents[1].peer = agents[1], agents[0]
    return [SimulatedRouterPort(clock, agent, ROUTER) for agent in agents]


@pytest.mark.parametrize("count", [3, 40])
def test_agents_that_send_to_each_other_do_not_wait_in_a_circle(two, count):
    """Each has more to send than the ports hold: one packet on each side."""

    async def one(port):
        for number in range(count):
            await port.send(packet(number), 0)
        found = []
        while len(found) < count:
            if (event := await port.next(port.cycle + 100)) is not None:
                found.append(event.flow)
        return found

    async def both():
        return await asyncio.wait_for(asyncio.gather(*(one(port) for port in two)), 20)

    assert asyncio.run(both()) == [list(range(count))] * 2
    assert [port.unsent for port in two] == [0, 0]


def test_a_packet_that_cannot_leave_is_given_up(two):
    two[0]._agent.peer = None

    async def script():
        await two[0].send(packet(0), 0)
        before = two[0].cycle
        await two[0].send(packet(1), 0)
        return two[0].cycle - before

    assert SEND_CYCLES <= asyncio.run(script()) < SEND_CYCLES + 10
    assert two[0].unsent == 1


def test_an_agent_keeps_as_many_packets_as_its_inbox_holds(two):
    """While it cannot send it takes what comes. More than it keeps is thrown away, so that the network goes on."""
    blocked, other = two
    blocked._agent.peer = None
    many = INBOX_PACKETS + 10

    async def script():
        await blocked.send(packet(0), 0)
        stuck = asyncio.ensure_future(blocked.send(packet(1), 0))
        for number in range(many):
            await other.send(packet(number), 0)
        while other._agent.sending or blocked._agent.received:
            await other._agent.read("SEND")
        blocked._agent.peer = other._agent
        await stuck
        found = []
        while (event := await blocked.next(blocked.cycle + 1)) is not None:
            found.append(event.flow)
        return found

    assert asyncio.run(script()) == list(range(INBOX_PACKETS))
    assert blocked.dropped == 10
