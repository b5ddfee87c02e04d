"""Each call of VIPL in each state of a VI, and each code with which a call may end."""

from inspect import signature

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import (
    NetAddress,
    Quality,
    ViAttributes,
    ViState,
)
from lanikai.sim.host.via.errors import VipReturn
from lanikai.sim.host.via.requests import ConnectionHandle
from support.sim.via_card import Net
from support.sim.via_processes import End, code_of, join, run

INVALID = VipReturn.VIP_INVALID_PARAMETER
STATES = tuple(ViState)


async def in_state(net, state):
    """An end in a state."""
    a, b = [await End.open(agent) for agent in net.agents]
    if state in (ViState.CONNECTED, ViState.ERROR):
        await join(net, a, b)
    if state is ViState.ERROR:
        await b.close()
        while a.vi.state is not state:
            await net.world.sleep(500)
    if state is ViState.CONNECT_PENDING:
        await vipl.VipConnectPeerRequest(a.vi, a.address(), b.address(), 10)
    assert a.vi.state is state
    return a, b


def handle_of(a, b):
    """A handle of a client that there is not on the other node: it will never say that it is ready."""
    attributes = ViAttributes(reliability=a.vi.attributes.reliability)
    return ConnectionHandle(a.nic, a.address(), b.nic.node, b.address(), attributes, b.vi.channel, 999)


ONLY_IDLE = {ViState.IDLE: VipReturn.VIP_SUCCESS}


NOT_IDLE = {state: VipReturn.VIP_SUCCESS for state in STATES if state is not ViState.IDLE}


CALLS = {
    "VipDestroyVi": (lambda a, b: vipl.VipDestroyVi(a.vi), ONLY_IDLE),
    "VipSetViAttributes": (
        lambda a, b: vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag, most_bytes=9)),
        ONLY_IDLE,
    ),
    "VipConnectRequest": (
        lambda a, b: vipl.VipConnectRequest(a.vi, a.address(), b.address(), 5),
        {ViState.IDLE: VipReturn.VIP_NO_MATCH},
    ),
    "VipConnectPeerRequest": (
        lambda a, b: vipl.VipConnectPeerRequest(a.vi, a.address(), b.address(), 5),
        ONLY_IDLE,
    ),
    "VipDisconnect": (lambda a, b: vipl.VipDisconnect(a.vi), NOT_IDLE),
    "VipQueryVi": (lambda a, b: vipl.VipQueryVi(a.vi), dict.fromkeys(STATES, VipReturn.VIP_SUCCESS)),
    "VipPostRecv": (
        lambda a, b: vipl.VipPostRecv(a.vi, a.descriptor()),
        dict.fromkeys(STATES, VipReturn.VIP_SUCCESS),
    ),
    "VipPostSend": (
        lambda a, b: vipl.VipPostSend(a.vi, a.descriptor()),
        dict.fromkeys(STATES, VipReturn.VIP_SUCCESS),
    ),
    "VipConnectPeerDone": (
        lambda a, b: vipl.VipConnectPeerDone(a.vi),
        {ViState.CONNECT_PENDING: VipReturn.VIP_SUCCESS},
    ),
    "VipConnectPeerWait": (
        lambda a, b: vipl.VipConnectPeerWait(a.vi),
        {ViState.CONNECT_PENDING: VipReturn.VIP_TIMEOUT},
    ),
    "VipConnectAccept": (
        lambda a, b: vipl.VipConnectAccept(handle_of(a, b), a.vi),
        {ViState.IDLE: VipReturn.VIP_NOT_REACHABLE},
    ),
    "VipSendWait": (
        lambda a, b: vipl.VipSendWait(a.vi, 5),
        dict.fromkeys(STATES, VipReturn.VIP_DESCRIPTOR_ERROR),
    ),
    "VipRecvWait": (
        lambda a, b: vipl.VipRecvWait(a.vi, 5),
        dict.fromkeys(STATES, VipReturn.VIP_DESCRIPTOR_ERROR),
    ),
    "VipSendNotify": (
        lambda a, b: vipl.VipSendNotify(a.vi, None, print),
        dict.fromkeys(STATES, VipReturn.VIP_SUCCESS),
    ),
    "VipRecvNotify": (
        lambda a, b: vipl.VipRecvNotify(a.vi, None, print),
        dict.fromkeys(STATES, VipReturn.VIP_SUCCESS),
    ),
    "VipSendDone": (
        lambda a, b: vipl.VipSendDone(a.vi),
        dict.fromkeys(STATES, VipReturn.VIP_DESCRIPTOR_ERROR),
    ),
    "VipRecvDone": (
        lambda a, b: vipl.VipRecvDone(a.vi),
        dict.fromkeys(STATES, VipReturn.VIP_DESCRIPTOR_ERROR),
    ),
}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
@pytest.mark.parametrize("name", CALLS)
def test_each_call_in_each_state(name, state):
    """A call that means nothing in a state ends with VIP_INVALID_STATE and changes nothing."""
    call, codes = CALLS[name]
    net = Net()

    async def main():
        a, b = await in_state(net, state)
        code = await code_of(call(a, b))
        assert code is codes.get(state, VipReturn.VIP_INVALID_STATE)
        if code is VipReturn.VIP_INVALID_STATE:
            assert a.vi.state is state

    run(net, main)


def test_no_call_of_a_vi_is_left_out():
    """The calls of VIPL whose first argument, or second, is a VI, are those of the table."""
    takes = {
        name
        for name in vipl.__all__
        if name[:3] == "Vip" and "vi" in signature(getattr(vipl, name)).parameters
    }
    assert takes == set(CALLS)


def test_an_acceptance_needs_an_idle_vi_and_a_handle_of_ones_own():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        c = await End.open(net.agents[1])

        async def server():
            _, _, handle = await vipl.VipConnectWait(b.nic, b.address(b"s"), 50)
            await vipl.VipConnectPeerRequest(b.vi, b.address(), a.address(), None)
            assert await code_of(vipl.VipConnectAccept(handle, b.vi)) is VipReturn.VIP_INVALID_STATE
            says = "node 1, process 2: the connection handle is not its own"
            assert await code_of(vipl.VipConnectAccept(handle, c.vi), says) is INVALID
            await vipl.VipDisconnect(b.vi)
            await vipl.VipConnectAccept(handle, b.vi)
            for call in (vipl.VipConnectAccept(handle, b.vi), vipl.VipConnectReject(handle)):
                assert await code_of(call) is INVALID
            for wrong in (None, 3):
                assert await code_of(vipl.VipConnectReject(wrong)) is INVALID
                assert await code_of(vipl.VipConnectAccept(wrong, b.vi)) is INVALID

        async def client():
            await net.world.sleep(20_000)
            await vipl.VipConnectRequest(a.vi, a.address(), b.address(b"s"), 50)

        await net.world.gather(server(), client())

    run(net, main)


async def reject(net, a, b):
    async def server():
        _, _, handle = await vipl.VipConnectWait(b.nic, b.address(), 50)
        await vipl.VipConnectReject(handle)

    async def client():
        await net.world.sleep(20_000)
        return await code_of(vipl.VipConnectRequest(a.vi, a.address(), b.address(), 50))

    return (await net.world.gather(server(), client()))[1]


def attributes(**fields):
    """A call that makes a VI with attributes that there cannot be."""

    def call(net, a, b):
        return vipl.VipCreateVi(a.nic, ViAttributes(**{"ptag": a.tag, **fields}))

    return call


def much(net, a, b):
    quality = Quality(bytes_per_s=10**9, message_bytes=4096)
    return vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag, quality=quality))


async def refused_rate(net, a, b):
    await much(net, a, b)
    await vipl.VipConnectRequest(a.vi, a.address(), b.address(), 5)


async def killed(net, a, b):
    await net.agents[0].kill(a.nic)
    await vipl.VipQueryVi(a.vi)


WAYS = {
    VipReturn.VIP_INVALID_PARAMETER: lambda net, a, b: vipl.VipCreateCQ(a.nic, 0),
    VipReturn.VIP_ERROR_RESOURCE: lambda net, a, b: vipl.VipDestroyPtag(a.nic, a.tag),
    VipReturn.VIP_TIMEOUT: lambda net, a, b: vipl.VipConnectWait(a.nic, a.address(), 0.01),
    VipReturn.VIP_REJECT: reject,
    VipReturn.VIP_INVALID_RELIABILITY_LEVEL: attributes(reliability=7),
    VipReturn.VIP_INVALID_MTU: attributes(most_bytes=0),
    VipReturn.VIP_INVALID_QOS: refused_rate,
    VipReturn.VIP_INVALID_PTAG: attributes(ptag=None),
    VipReturn.VIP_INVALID_RDMAREAD: attributes(rdma_read=True),
    VipReturn.VIP_DESCRIPTOR_ERROR: lambda net, a, b: vipl.VipSendDone(a.vi),
    VipReturn.VIP_INVALID_STATE: lambda net, a, b: vipl.VipDisconnect(a.vi),
    VipReturn.VIP_ERROR_NAMESERVICE: lambda net, a, b: vipl.VipNSShutdown(a.nic),
    VipReturn.VIP_NO_MATCH: lambda net, a, b: vipl.VipConnectRequest(a.vi, a.address(), b.address(), 5),
    VipReturn.VIP_NOT_REACHABLE: lambda net, a, b: vipl.VipConnectRequest(
        a.vi, a.address(), NetAddress(9), 5
    ),
    VipReturn.VIP_ERROR_NOT_SUPPORTED: lambda net, a, b: vipl.VipQuerySystemManagementInfo(a.nic, 9),
    VipReturn.VIP_ERROR: killed,
}


def test_every_code_has_a_way():
    assert set(WAYS) == set(VipReturn) - {VipReturn.VIP_SUCCESS, VipReturn.VIP_NOT_DONE}


@pytest.mark.parametrize("code", WAYS, ids=lambda code: code.name)
def test_a_call_ends_with_each_code_in_one_line(code):
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        found = WAYS[code](net, a, b)
        found = await (found if WAYS[code] is reject else code_of(found))
        assert found is code

    run(net, main)
