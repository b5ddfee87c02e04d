"""Conformance: every code with which each call of VIPL may end (`ends_of`) is brought about."""

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import MemAttributes, NetAddress, Quality, ViAttributes
from lanikai.sim.host.via.errors import VipError, VipReturn
from lanikai.sim.host.via.vipl.ends import GONE, ends_of, ends_with
from support.sim import via_ways as by
from support.sim.via_card import Net
from support.sim.via_processes import run
from support.sim.via_ways import Scene, after, built, given, twice, until_none_is_left, waiter

CALLS = [name for name in vipl.__all__ if name.startswith("Vip")]
INVALID, RESOURCE = VipReturn.VIP_INVALID_PARAMETER, VipReturn.VIP_ERROR_RESOURCE
STATE, TIMEOUT, NONE = VipReturn.VIP_INVALID_STATE, VipReturn.VIP_TIMEOUT, VipReturn.VIP_NOT_DONE
SILENT, QOS, PTAG = VipReturn.VIP_NOT_REACHABLE, VipReturn.VIP_INVALID_QOS, VipReturn.VIP_INVALID_PTAG
LEVEL, MTU = VipReturn.VIP_INVALID_RELIABILITY_LEVEL, VipReturn.VIP_INVALID_MTU
READ, NAMES = VipReturn.VIP_INVALID_RDMAREAD, VipReturn.VIP_ERROR_NAMESERVICE
DESCRIPTOR, GONE_CODE = VipReturn.VIP_DESCRIPTOR_ERROR, VipReturn.VIP_ERROR


def having(name, **attributes):
    """The call with attributes of a VI, those of the process' tag if nothing else is said."""
    return lambda scene: scene.call(name, attributes=ViAttributes(**{"ptag": scene.a.tag, **attributes}))


WAYS = {
    ("VipOpenNic", RESOURCE): [until_none_is_left("VipOpenNic")],
    ("VipErrorCallback", INVALID): [given("VipErrorCallback", handler=3)],
    ("VipQuerySystemManagementInfo", VipReturn.VIP_ERROR_NOT_SUPPORTED): [
        given("VipQuerySystemManagementInfo", info_type=9)
    ],
    ("VipNSInit", NAMES): [twice("VipNSInit")],
    ("VipNSShutdown", NAMES): [given("VipNSShutdown")],
    ("VipNSGetHostByName", NAMES): [
        given("VipNSGetHostByName"),
        after("VipNSGetHostByName", given("VipNSInit"), name="node9"),
    ],
    ("VipNSGetHostByAddr", INVALID): [after("VipNSGetHostByAddr", given("VipNSInit"), address=1)],
    ("VipNSGetHostByAddr", NAMES): [
        given("VipNSGetHostByAddr"),
        after("VipNSGetHostByAddr", given("VipNSInit"), address=NetAddress(9)),
    ],
    ("VipCreatePtag", RESOURCE): [until_none_is_left("VipCreatePtag")],
    ("VipDestroyPtag", PTAG): [given("VipDestroyPtag", ptag=None)],
    ("VipDestroyPtag", RESOURCE): [given("VipDestroyPtag")],
    ("VipRegisterMem", INVALID): [
        given("VipRegisterMem", length=8193),
        given("VipRegisterMem", attributes=1),
    ],
    ("VipRegisterMem", PTAG): [given("VipRegisterMem", attributes=MemAttributes(ptag=None))],
    ("VipRegisterMem", RESOURCE): [until_none_is_left("VipRegisterMem")],
    ("VipDeregisterMem", INVALID): [given("VipDeregisterMem", handle=77), twice("VipDeregisterMem")],
    ("VipQueryMem", INVALID): [given("VipQueryMem", handle=77), given("VipQueryMem", address=0)],
    ("VipSetMemAttributes", INVALID): [
        given("VipSetMemAttributes", handle=77),
        given("VipSetMemAttributes", attributes=None),
    ],
    ("VipSetMemAttributes", PTAG): [given("VipSetMemAttributes", attributes=MemAttributes(ptag=None))],
    **{
        (call, code): [having(call, **attributes)]
        for call in ("VipCreateVi", "VipSetViAttributes")
        for code, attributes in (
            (PTAG, {"ptag": None}),
            (LEVEL, {"reliability": 7}),
            (MTU, {"most_bytes": 0}),
            (READ, {"rdma_read": True}),
        )
    },
    ("VipCreateVi", INVALID): [given("VipCreateVi", attributes=1), built("VipCreateVi", by.foreign_queue)],
    ("VipCreateVi", QOS): [having("VipCreateVi", quality=Quality(bytes_per_s=0, message_bytes=1))],
    ("VipCreateVi", RESOURCE): [until_none_is_left("VipCreateVi")],
    ("VipDestroyVi", STATE): [after("VipDestroyVi", by.connected), after("VipDestroyVi", Scene.pending)],
    ("VipDestroyVi", RESOURCE): [after("VipDestroyVi", by.posted)],
    ("VipSetViAttributes", INVALID): [given("VipSetViAttributes", attributes=1)],
    ("VipSetViAttributes", QOS): [
        having("VipSetViAttributes", quality=7),
        by.new_rate_too_high_here,
        by.new_rate_too_high_for_the_other,
    ],
    ("VipSetViAttributes", STATE): [
        after("VipSetViAttributes", Scene.pending),
        by.new_rate_at_the_end,
    ],
    ("VipSetViAttributes", RESOURCE): [built("VipSetViAttributes", by.other_tag)],
    ("VipSetViAttributes", SILENT): [by.new_rate_without_an_answer],
    ("VipConnectWait", INVALID): [
        given("VipConnectWait", local=NetAddress(1)),
        given("VipConnectWait", timeout_ms=-1),
        given("VipConnectWait", timeout_ms="1"),
    ],
    ("VipConnectWait", TIMEOUT): [given("VipConnectWait")],
    ("VipConnectAccept", INVALID): [
        given("VipConnectAccept", handle=1),
        built("VipConnectAccept", by.rejected_handle),
    ],
    ("VipConnectAccept", STATE): [after("VipConnectAccept", Scene.pending)],
    ("VipConnectAccept", LEVEL): [built("VipConnectAccept", by.handle_of_another_level)],
    ("VipConnectAccept", MTU): [built("VipConnectAccept", by.handle_of_shorter_messages)],
    ("VipConnectAccept", QOS): [built("VipConnectAccept", by.handle_of_much)],
    ("VipConnectAccept", TIMEOUT): [built("VipConnectAccept", by.handle_whose_client_waits_no_more)],
    ("VipConnectAccept", SILENT): [given("VipConnectAccept"), by.silent_client],
    ("VipConnectReject", INVALID): [built("VipConnectReject", by.rejected_handle)],
    ("VipConnectReject", TIMEOUT): [built("VipConnectReject", by.handle_whose_client_waits_no_more)],
    ("VipConnectRequest", INVALID): [
        given("VipConnectRequest", timeout_ms=0),
        given("VipConnectRequest", local=NetAddress(1)),
        given("VipConnectRequest", remote=NetAddress(1, bytes(99))),
    ],
    ("VipConnectRequest", STATE): [after("VipConnectRequest", by.connected), by.request_that_is_ended],
    ("VipConnectRequest", QOS): [after("VipConnectRequest", by.too_much), by.rejected_for_its_rate],
    ("VipConnectRequest", TIMEOUT): [after("VipConnectRequest", by.no_answer, timeout_ms=0.1)],
    ("VipConnectRequest", VipReturn.VIP_REJECT): [by.rejected],
    ("VipConnectRequest", VipReturn.VIP_NO_MATCH): [given("VipConnectRequest", timeout_ms=50)],
    ("VipConnectRequest", SILENT): [
        given("VipConnectRequest", remote=NetAddress(9)),
        given("VipConnectRequest", remote=NetAddress(0)),
        after("VipConnectRequest", by.silence, timeout_ms=None),
    ],
    ("VipConnectPeerRequest", INVALID): [
        given("VipConnectPeerRequest", timeout_ms=0),
        given("VipConnectPeerRequest", remote=1),
    ],
    ("VipConnectPeerRequest", STATE): [
        after("VipConnectPeerRequest", by.connected),
        twice("VipConnectPeerRequest"),
    ],
    ("VipConnectPeerRequest", QOS): [after("VipConnectPeerRequest", by.too_much)],
    ("VipConnectPeerRequest", SILENT): [
        given("VipConnectPeerRequest", remote=NetAddress(9)),
        given("VipConnectPeerRequest", remote=NetAddress(0)),
    ],
    **{
        (call, code): ways
        for call in ("VipConnectPeerDone", "VipConnectPeerWait")
        for code, ways in {
            STATE: [given(call), after(call, by.peer_that_is_ended)],
            LEVEL: [after(call, by.peers_of_different_levels)],
            MTU: [after(call, by.peers_of_different_lengths)],
            QOS: [after(call, by.peers_of_much)],
            TIMEOUT: [after(call, by.peer_that_comes_too_late)],
            SILENT: [after(call, by.silent_peer)],
        }.items()
    },
    ("VipConnectPeerDone", NONE): [after("VipConnectPeerDone", Scene.pending)],
    ("VipDisconnect", STATE): [given("VipDisconnect")],
    ("VipCreateCQ", INVALID): [given("VipCreateCQ", entries=0), given("VipCreateCQ", entries=1 << 20)],
    ("VipCreateCQ", RESOURCE): [until_none_is_left("VipCreateCQ")],
    ("VipDestroyCQ", INVALID): [twice("VipDestroyCQ")],
    ("VipDestroyCQ", RESOURCE): [after("VipDestroyCQ", by.told_vi)],
    ("VipResizeCQ", INVALID): [given("VipResizeCQ", entries=0)],
    ("VipResizeCQ", RESOURCE): [after("VipResizeCQ", by.full_memory, entries=1 << 14)],
    ("VipCQDone", NONE): [given("VipCQDone")],
    ("VipCQDone", RESOURCE): [after("VipCQDone", by.dead_ring)],
    ("VipCQWait", INVALID): [given("VipCQWait", timeout_ms=-1)],
    ("VipCQWait", TIMEOUT): [given("VipCQWait")],
    ("VipCQWait", RESOURCE): [after("VipCQWait", by.dead_ring), after("VipCQWait", by.waiter_of_the_queue)],
    ("VipCQNotify", INVALID): [given("VipCQNotify", callback=3)],
    ("VipCQNotify", RESOURCE): [after("VipCQNotify", by.waiter_of_the_queue)],
    **{
        (f"Vip{call.format(kind)}", code): ways
        for kind in ("Send", "Recv")
        for call, code, ways in (
            ("Post{}", INVALID, [given(f"VipPost{kind}", descriptor=3), by.posted_twice(f"VipPost{kind}")]),
            ("Post{}", RESOURCE, [until_none_is_left(f"VipPost{kind}")]),
            ("Post{}", GONE_CODE, [after(f"VipPost{kind}", by.lost_channel)]),
            ("{}Done", DESCRIPTOR, [given(f"Vip{kind}Done"), after(f"Vip{kind}Done", by.flushed)]),
            ("{}Wait", INVALID, [given(f"Vip{kind}Wait", timeout_ms=-1)]),
            ("{}Wait", DESCRIPTOR, [given(f"Vip{kind}Wait"), after(f"Vip{kind}Wait", by.flushed)]),
            ("{}Notify", INVALID, [given(f"Vip{kind}Notify", callback=3)]),
            *(
                (
                    f"{{}}{call}",
                    RESOURCE,
                    [built(f"Vip{kind}{call}", by.told_vi), after(f"Vip{kind}{call}", waiter(kind))],
                )
                for call in ("Wait", "Notify")
            ),
        )
    },
    ("VipSendDone", NONE): [after("VipSendDone", by.sent_and_not_ended)],
    ("VipRecvDone", NONE): [after("VipRecvDone", by.posted)],
    ("VipSendWait", TIMEOUT): [after("VipSendWait", by.sent_and_not_ended)],
    ("VipRecvWait", TIMEOUT): [after("VipRecvWait", by.posted)],
}


def ways_of(name, code):
    """All ways to have a call end with a code."""
    found = list(WAYS.get((name, code), []))
    if code is INVALID:
        found.append(by.no_handle(name))
    if code is GONE_CODE and name != "VipOpenNic":
        found.append(by.gone(name))
    return found


def test_every_code_of_every_call_has_a_way():
    missing = [(name, code.name) for name in CALLS for code in ends_of(name) if not ways_of(name, code)]
    assert missing == []


def test_no_way_is_to_a_code_that_is_none_of_its_call():
    assert [(name, code.name) for name, code in WAYS if code not in ends_of(name)] == []


@pytest.mark.parametrize("name", CALLS)
def test_a_call_ends_with_each_of_its_codes(name):
    for code in ends_of(name):
        for number, way in enumerate(ways_of(name, code)):
            assert end(way) is code, (code.name, number)


def end(way):
    """The code of a way; None that is returned is VIP_NOT_DONE or VIP_SUCCESS: which, `ends_of` says."""
    net = Net()

    async def main():
        scene = await Scene.open(net)
        try:
            found = await way(scene)
        except VipError as error:
            line = str(error)
            assert line.startswith(error.code.name + ": ") and "\n" not in line
            return error.code
        return VipReturn.VIP_NOT_DONE if found is None else VipReturn.VIP_SUCCESS

    return run(net, main)


def test_a_call_may_not_end_with_another_code():
    """A code that was left out is found by whoever meets it."""

    @ends_with(VIP_TIMEOUT="too late")
    async def VipTest(code):
        """A call."""
        raise VipError(code, "it ends so")

    async def main():
        for code in (TIMEOUT, GONE_CODE):
            with pytest.raises(VipError):
                await VipTest(code)
        with pytest.raises(
            AssertionError, match=r"^VipTest: ends with VIP_REJECT: it ends so, which it may not$"
        ):
            await VipTest(VipReturn.VIP_REJECT)

    run(Net(), main)
    assert ends_of("VipTest") == {TIMEOUT: "too late", GONE_CODE: GONE}
