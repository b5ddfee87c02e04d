"""Each call of VIPL in each state of a VI, and each code with which a call may end."""

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import (
    ViAttributes,
    ViState,
)
from lanikai.sim.host.via.errors import VipReturn
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
        await vipl.VipConnectPeerRequest(a.vi, a.address(), b.address(), None)
    assert a.vi.state is state
    return a, b


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
