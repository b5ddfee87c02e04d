"""Every call of VIPL that sets up, each with every code that it can end with; names of handles and of attributes."""

import pytest
from lanikai.firmware.via.config import ProcessLimits
from lanikai.sim.host.errors import MemoryUseError
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import (
    MemAttributes,
    NetAddress,
    Quality,
    Reliability,
    ViAttributes,
)
from lanikai.sim.host.via.errors import VipError, VipReturn
from support.sim.via_card import CONFIG, NIC, Net
from support.sim.via_processes import End, code_of, join, pair, run

INVALID, RESOURCE = VipReturn.VIP_INVALID_PARAMETER, VipReturn.VIP_ERROR_RESOURCE


def test_a_nic_says_what_it_can_do():
    net = Net(3)

    async def main():
        nic = await vipl.VipOpenNic(net.agents[2])
        found = await vipl.VipQueryNic(nic)
        assert (found.name, found.node, found.thread_safe) == ("lanikai2", 2, True)
        assert (found.most_vis, found.most_ptags, found.most_regions) == (7, 7, NIC.regions)
        assert (found.most_descriptors, found.most_segments) == (CONFIG.queue_entries, CONFIG.data_segments)
        assert found.most_completion_queues == NIC.completion_queues
        assert (found.most_transfer_bytes, found.native_mtu_bytes) == (65535, NIC.mtu_bytes - 16)
        assert found.reliability_levels == tuple(Reliability)
        assert found.rdma_read_levels == (Reliability.RELIABLE_DELIVERY, Reliability.RELIABLE_RECEPTION)
        listed = await vipl.VipQuerySystemManagementInfo(nic, vipl.VIP_SMI_AUTODISCOVERY)
        assert listed == [NetAddress(0), NetAddress(1)]
        code = await code_of(
            vipl.VipQuerySystemManagementInfo(nic, 2),
            "node 2, process 1: information 2; there is 1 (VIP_SMI_AUTODISCOVERY)",
        )
        assert code is VipReturn.VIP_ERROR_NOT_SUPPORTED

    run(net, main)


def test_every_page_of_the_card_is_given_once_and_given_back():
    net = Net()

    async def main():
        nics = [await vipl.VipOpenNic(net.agents[0]) for _ in range(7)]
        assert await code_of(vipl.VipOpenNic(net.agents[0]), "node 0: the card has no owner left") is RESOURCE
        await vipl.VipCloseNic(nics.pop())
        nic = await vipl.VipOpenNic(net.agents[0])
        # The first tag is the process' own page; another one is another page.
        tag = await vipl.VipCreatePtag(nic)
        assert await code_of(vipl.VipCreatePtag(nic), "node 0: the card has no owner left") is RESOURCE
        await vipl.VipCloseNic(nics.pop())
        other = await vipl.VipCreatePtag(nic)
        assert tag.owner == nic.owner != other.owner
        await vipl.VipDestroyPtag(nic, tag)
        assert (await vipl.VipCreatePtag(nic)).owner == nic.owner

    run(net, main)


def test_nothing_is_left_of_a_nic_that_is_closed_and_its_handles_say_so():
    net = Net()

    async def main():
        a, _b = await pair(net, queues=4)
        queue = a.vi.told[0]
        await a.close()
        calls = [
            vipl.VipQueryNic(a.nic),
            vipl.VipCloseNic(a.nic),
            vipl.VipCreatePtag(a.nic),
            vipl.VipRegisterMem(a.nic, a.memory.start, 8, MemAttributes(ptag=a.tag)),
            vipl.VipQueryVi(a.vi),
            vipl.VipPostSend(a.vi, a.descriptor()),
            vipl.VipSendDone(a.vi),
            vipl.VipRecvWait(a.vi, 1),
            vipl.VipDisconnect(a.vi),
            vipl.VipCQDone(queue),
            vipl.VipConnectWait(a.nic, a.address(), 1),
        ]
        for call in calls:
            code = await code_of(call, "node 0, process 1: it has closed this NIC, or is no more")
            assert code is VipReturn.VIP_ERROR
        with pytest.raises(VipError):
            a.nic.allocate(8)

    run(net, main)


def test_tags_memory_and_their_codes():
    net = Net()

    async def main():
        a, b = await End.open(net.agents[0]), await End.open(net.agents[0])
        other = await vipl.VipCreatePtag(a.nic)
        who = "node 0, process 1"
        foreign = f"{who}: a protection tag that is not its own; VipCreatePtag makes one"
        for wrong in (b.tag, None, 3):
            memory = MemAttributes(ptag=wrong)
            for call in (
                vipl.VipDestroyPtag(a.nic, wrong),
                vipl.VipRegisterMem(a.nic, a.memory.start, 8, memory),
                vipl.VipSetMemAttributes(a.nic, a.memory.start, a.handle, memory),
                vipl.VipCreateVi(a.nic, ViAttributes(ptag=wrong)),
                vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=wrong)),
            ):
                assert await code_of(call, foreign) is VipReturn.VIP_INVALID_PTAG
        says = f"{who}: 2 VIs and regions have this protection tag"
        assert await code_of(vipl.VipDestroyPtag(a.nic, a.tag), says) is RESOURCE
        # Memory: all of it, a part across pages, and bytes that are not there.
        good = MemAttributes(ptag=a.tag, rdma_read=True)
        handle = await vipl.VipRegisterMem(a.nic, a.memory.start + 4090, 20, good)
        assert await vipl.VipQueryMem(a.nic, a.memory.start + 4090, handle) == good
        region = net.cards[0].regions[handle & 0xFF]
        assert (region["start"], region["bytes"]) == (a.memory.start + 4090, 20)
        assert net.cards[0].sram[net.cards[0].layout.region_flag(handle & 0xFF)] == 2
        for start, length in ((0, 0), (-1, 8), (8185, 8), (8192, 1)):
            call = vipl.VipRegisterMem(a.nic, a.memory.start + start, length, good)
            assert await code_of(call) is INVALID
        assert await code_of(vipl.VipRegisterMem(a.nic, a.memory.start, 8, 5)) is INVALID
        for call in (
            vipl.VipQueryMem(a.nic, a.memory.start, handle),
            vipl.VipQueryMem(a.nic, b.memory.start, 77),
            vipl.VipDeregisterMem(a.nic, a.memory.start + 4110, handle),
            vipl.VipDeregisterMem(b.nic, a.memory.start + 4090, handle),
        ):
            assert await code_of(call) is INVALID
        # Another tag: the handle stays, and the card asks for the other owner.
        changed = MemAttributes(ptag=other, rdma_write=True)
        await vipl.VipSetMemAttributes(a.nic, a.memory.start + 4100, handle, changed)
        assert net.cards[0].regions[handle & 0xFF]["owner"] == other.owner
        assert net.cards[0].sram[net.cards[0].layout.region_flag(handle & 0xFF)] == 1
        assert (a.tag.users, other.users) == (2, 1)
        with pytest.raises(MemoryUseError, match=r"is registered: deregister it before it is given back$"):
            a.nic.release(a.memory)
        for start, one in ((0, a.handle), (4090, handle)):
            await vipl.VipDeregisterMem(a.nic, a.memory.start + start, one)
            assert await code_of(vipl.VipDeregisterMem(a.nic, a.memory.start + start, one)) is INVALID
        a.nic.release(a.memory)
        with pytest.raises(MemoryUseError, match=r"was not allocated here, or is free already$"):
            a.nic.release(a.memory)
        await vipl.VipDestroyPtag(a.nic, other)
        assert await code_of(vipl.VipDestroyPtag(a.nic, other), foreign) is VipReturn.VIP_INVALID_PTAG

    run(net, main)


def test_all_regions_and_all_host_memory_come_to_an_end():
    net = Net(memory_bytes=1 << 17)

    async def main():
        a = await End.open(net.agents[0])
        good = MemAttributes(ptag=a.tag)
        handles = [await vipl.VipRegisterMem(a.nic, a.memory.start, 8, good) for _ in range(NIC.regions - 1)]
        says = "node 0: all 16 memory regions of the card are in use: deregister one"
        assert await code_of(vipl.VipRegisterMem(a.nic, a.memory.start, 8, good), says) is RESOURCE
        for handle in handles[1:]:
            await vipl.VipDeregisterMem(a.nic, a.memory.start, handle)
        with pytest.raises(MemoryUseError):
            while True:
                a.nic.allocate(4096)
        assert await code_of(vipl.VipRegisterMem(a.nic, a.memory.start, 8, good)) is RESOURCE
        assert await code_of(vipl.VipCreateCQ(a.nic, 4)) is RESOURCE
        assert await code_of(vipl.VipCreateVi(a.nic, ViAttributes(ptag=a.tag))) is RESOURCE

    run(net, main)


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"reliability": 1.5}, "VIP_INVALID_RELIABILITY_LEVEL", "reliability = 1.5: one of UNRELIABLE, "),
        ({"most_bytes": 0}, "VIP_INVALID_MTU", "most_bytes = 0: 1 to 65535"),
        ({"most_bytes": 65536}, "VIP_INVALID_MTU", "most_bytes = 65536: 1 to 65535"),
        ({"rdma_read": True}, "VIP_INVALID_RDMAREAD", "RDMA reads need a reliable level, not UNRELIABLE"),
        ({"quality": 7}, "VIP_INVALID_QOS", "7: a Quality of 1 to "),
        ({"quality": Quality(bytes_per_s=0, message_bytes=1)}, "VIP_INVALID_QOS", "Quality("),
        ({"quality": Quality(bytes_per_s=1, message_bytes=65536)}, "VIP_INVALID_QOS", "Quality("),
        ({"quality": Quality(bytes_per_s=1 << 32, message_bytes=1)}, "VIP_INVALID_QOS", "Quality("),
    ],
)
def test_attributes_that_no_vi_can_have(fields, code, says):
    net = Net()

    async def main():
        a = await End.open(net.agents[0])
        attributes = ViAttributes(**{"ptag": a.tag, **fields})
        for call in (vipl.VipCreateVi(a.nic, attributes), vipl.VipSetViAttributes(a.vi, attributes)):
            with pytest.raises(VipError) as error:
                await call
            assert error.value.code.name == code
            assert str(error.value).startswith(f"{code}: node 0, process 1: {says}")

    run(net, main)


def test_vis_are_made_until_the_card_has_none_and_destroyed():
    net = Net()

    async def main():
        a = await End.open(net.agents[0])
        attributes = ViAttributes(ptag=a.tag)
        vis = [await vipl.VipCreateVi(a.nic, attributes) for _ in range(6)]
        call = vipl.VipCreateVi(a.nic, attributes)
        assert await code_of(call, "node 0: the card has no channel left") is RESOURCE
        await vipl.VipDestroyVi(vis[0])
        says = f"VI {vis[0].channel} of node 0: it is destroyed"
        for call in (vipl.VipDestroyVi(vis[0]), vipl.VipQueryVi(vis[0]), vipl.VipSendDone(vis[0])):
            assert await code_of(call, says) is INVALID
        again = await vipl.VipCreateVi(a.nic, attributes)
        assert again.channel == vis[0].channel
        await vipl.VipPostRecv(again, a.descriptor())
        says = (
            f"VI {again.channel} of node 0: 0 and 1 descriptors are on its queues to send and to receive: take them "
            "off first"
        )
        assert await code_of(vipl.VipDestroyVi(again), says) is RESOURCE
        for wrong in (None, 5, "VI"):
            assert await code_of(vipl.VipDestroyVi(wrong)) is INVALID
            assert await code_of(vipl.VipPostSend(wrong, a.descriptor())) is INVALID
        assert await code_of(vipl.VipCreateVi(a.nic, None)) is INVALID

    run(net, main)


def test_an_idle_vi_may_change_its_tag_while_its_queues_are_empty():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        other = await vipl.VipCreatePtag(a.nic)
        await vipl.VipPostRecv(a.vi, a.descriptor())
        changed = ViAttributes(ptag=other)
        assert await code_of(vipl.VipSetViAttributes(a.vi, changed)) is RESOURCE
        await join(net, a, b)
        assert await code_of(vipl.VipSetViAttributes(a.vi, changed)) is VipReturn.VIP_INVALID_STATE
        await vipl.VipDisconnect(a.vi)
        assert await code_of(vipl.VipRecvDone(a.vi)) is VipReturn.VIP_DESCRIPTOR_ERROR
        await vipl.VipSetViAttributes(a.vi, changed)
        assert (a.tag.users, other.users) == (1, 1)
        assert net.cards[0].channels[a.vi.channel].owner == other.owner
        await vipl.VipDestroyVi(a.vi)
        assert (a.tag.users, other.users) == (1, 0)

    run(net, main)


def test_completion_queues_and_their_codes():
    net = Net()

    async def main():
        a, b = await End.open(net.agents[0], queues=5), await End.open(net.agents[0])
        queue = a.vi.told[0]
        assert queue.kit.entries == 8
        for entries in (0, -1, 32769, 4.0):
            assert await code_of(vipl.VipCreateCQ(a.nic, entries)) is INVALID
            assert await code_of(vipl.VipResizeCQ(queue, entries)) is INVALID
        says = "node 0, process 1: completion queue 0 tells the ends of 2 work queues"
        assert await code_of(vipl.VipDestroyCQ(queue), says) is RESOURCE
        says = "node 0, process 2: completion queue 0 is not its own, or is destroyed"
        assert await code_of(vipl.VipCreateVi(b.nic, b.vi.attributes, queue), says) is INVALID
        more = [await vipl.VipCreateCQ(a.nic, 2) for _ in range(3)]
        says = "node 0: the card has no completion queue left"
        assert await code_of(vipl.VipCreateCQ(b.nic, 2), says) is RESOURCE
        await vipl.VipDestroyCQ(more[0])
        says = "node 0, process 1: completion queue 1 is not its own, or is destroyed"
        for call in (vipl.VipDestroyCQ(more[0]), vipl.VipCQDone(more[0]), vipl.VipCQWait(more[0], 1)):
            assert await code_of(call, says) is INVALID
        await vipl.VipCreateCQ(b.nic, 2)
        assert await code_of(vipl.VipCQDone(None)) is INVALID
        await vipl.VipResizeCQ(queue, 16)
        assert queue.kit.entries == 16 and await vipl.VipCQDone(queue) is None
        says = "node 0, process 1: completion queue 0 has told nothing in 0.1 ms"
        assert await code_of(vipl.VipCQWait(queue, 0.1), says) is VipReturn.VIP_TIMEOUT
        assert await code_of(vipl.VipCQNotify(queue, None, 3)) is INVALID

    run(net, main)


def test_names_of_nodes():
    net = Net()
    wrong = VipReturn.VIP_ERROR_NAMESERVICE

    async def main():
        nic = await vipl.VipOpenNic(net.agents[1])
        early = "node 1, process 1: call VipNSInit first"
        for call in (
            vipl.VipNSGetHostByName(nic, "node0"),
            vipl.VipNSGetHostByAddr(nic, NetAddress(0)),
            vipl.VipNSShutdown(nic),
        ):
            assert await code_of(call, early) is wrong
        await vipl.VipNSInit(nic)
        assert await code_of(vipl.VipNSInit(nic)) is wrong
        assert await vipl.VipNSGetHostByName(nic, "node0") == NetAddress(0)
        assert await vipl.VipNSGetHostByAddr(nic, NetAddress(1, b"x")) == "node1"
        says = "node 1, process 1: no host 'node2'; there are node0, node1"
        assert await code_of(vipl.VipNSGetHostByName(nic, "node2"), says) is wrong
        assert await code_of(vipl.VipNSGetHostByAddr(nic, NetAddress(2))) is wrong
        assert await code_of(vipl.VipNSGetHostByAddr(nic, 0)) is INVALID
        await vipl.VipNSShutdown(nic)
        assert await code_of(vipl.VipNSGetHostByName(nic, "node0"), early) is wrong

    run(net, main)


def test_a_process_has_no_more_than_its_limits():
    """Counted for each process by itself, given back with what it had, and said by VipQueryNic."""
    most = {"most_vis": 2, "most_tags": 2, "most_regions": 3, "most_completion_queues": 1}
    limits = ProcessLimits(**most, most_memory_bytes=3 * 4096)
    net = Net(config=CONFIG.replace(limits=limits))

    async def main():
        a, b = await End.open(net.agents[0], queues=4), await End.open(net.agents[0])
        found = await vipl.VipQueryNic(a.nic)
        said = found.most_vis, found.most_ptags, found.most_regions, found.most_completion_queues
        assert said == tuple(most.values())

        def vi():
            return vipl.VipCreateVi(a.nic, ViAttributes(ptag=a.tag))

        def memory():
            return vipl.VipRegisterMem(a.nic, a.memory.start, 8, MemAttributes(ptag=a.tag))

        says = "node 0, process 1: it has {} {}, and a process may have {} (ViaConfig.limits.{})"

        async def to_the_limit(make, has, what, name):
            made = [await make() for _ in range(most[name] - has)]
            says_so = says.format(most[name], what, most[name], name)
            assert await code_of(make(), says_so) is RESOURCE
            return made

        (other,) = await to_the_limit(vi, 1, "VIs", "most_vis")
        (tag,) = await to_the_limit(lambda: vipl.VipCreatePtag(a.nic), 1, "protection tags", "most_tags")
        handles = await to_the_limit(memory, 1, "memory regions", "most_regions")
        await to_the_limit(
            lambda: vipl.VipCreateCQ(a.nic, 4), 1, "completion queues", "most_completion_queues"
        )
        a.nic.allocate(1)
        with pytest.raises(
            MemoryUseError, match="it has 12288 bytes of memory and wants 4096, and a process"
        ):
            a.nic.allocate(0)
        # The other process has its own.
        await vipl.VipCreateVi(b.nic, ViAttributes(ptag=b.tag))
        b.nic.allocate(1)
        await vipl.VipDestroyVi(other)
        await vipl.VipDestroyPtag(a.nic, tag)
        await vipl.VipDeregisterMem(a.nic, a.memory.start, handles[0])
        await vi()
        await vipl.VipCreatePtag(a.nic)
        await memory()

    run(net, main)
