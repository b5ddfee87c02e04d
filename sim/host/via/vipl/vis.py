"""Calls of VIs: create, destroy, query, attributes."""

from __future__ import annotations

from dataclasses import replace

from lanikai.firmware.via.config import MOST_MESSAGE_BYTES

from ..attributes import RDMA_READ_LEVELS, Quality, Reliability, ViAttributes, ViState
from ..completion_queue import VipCompletionQueue
from ..errors import VipError, VipReturn
from ..nic import VipNic
from ..vi import Vi
from .checks import agent_of, check_ptag, check_queue, check_state, check_vi, in_kernel, invalid
from .ends import ends_with

__all__ = ["VipCreateVi", "VipDestroyVi", "VipQueryVi", "VipSetViAttributes"]

MOST_BYTES_PER_S = (1 << 32) - 1


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, no attributes, or another process' completion queue",
    VIP_INVALID_PTAG="its tag is none of the process'",
    VIP_INVALID_RELIABILITY_LEVEL="there is no such level",
    VIP_INVALID_MTU="its longest message is not of 1 to 65,535 bytes",
    VIP_INVALID_RDMAREAD="RDMA reads on the unreliable level",
    VIP_INVALID_QOS="no VI can have such a rate",
    VIP_ERROR_RESOURCE="card or host have no more, or the process has as many as it may",
)
async def VipCreateVi(
    nic: VipNic,
    attributes: ViAttributes,
    send_completions: VipCompletionQueue | None = None,
    receive_completions: VipCompletionQueue | None = None,
) -> Vi:
    """A VI, idle. The ends of its descriptors are told in the completion queues; None: by the descriptors alone.

    Ends with VIP_INVALID_PTAG, VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_INVALID_QOS, VIP_INVALID_RDMAREAD,
    VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. Whether the cards have the capacity of its QoS is found out when it is
    connected.
    """
    async with in_kernel(nic):
        _check(nic, attributes)
        told = send_completions, receive_completions
        for queue in told:
            if queue is not None:
                check_queue(queue, nic)
        return await agent_of(nic).create_vi(nic, attributes, told)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI",
    VIP_INVALID_STATE="it is not idle",
    VIP_ERROR_RESOURCE="descriptors are on its queues",
)
async def VipDestroyVi(vi: Vi) -> None:
    """Destroy an idle VI.

    Ends with VIP_INVALID_STATE if it is not idle, and VIP_ERROR_RESOURCE while descriptors are on its queues.
    """
    check_vi(vi)
    async with in_kernel(vi.nic):
        check_vi(vi)
        check_state(vi, ViState.IDLE)
        if len(vi.send) or len(vi.receive):
            raise VipError(
                VipReturn.VIP_ERROR_RESOURCE,
                f"{vi}: {len(vi.send)} and {len(vi.receive)} descriptors are on its queues to send and to receive: "
                "take them off first",
            )
        await agent_of(vi.nic).destroy_vi(vi)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI",
)
async def VipQueryVi(vi: Vi) -> tuple[ViState, ViAttributes, bool, bool]:
    """Its state, its attributes, and whether its queues to send and to receive are empty."""
    check_vi(vi)
    return vi.state, vi.attributes, not len(vi.send), not len(vi.receive)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or no attributes",
    VIP_INVALID_PTAG="its tag is none of the process'",
    VIP_INVALID_RELIABILITY_LEVEL="there is no such level",
    VIP_INVALID_MTU="its longest message is not of 1 to 65,535 bytes",
    VIP_INVALID_RDMAREAD="RDMA reads on the unreliable level",
    VIP_INVALID_QOS="no VI can have such a rate, or one of the two cards has not the capacity",
    VIP_INVALID_STATE="it is not idle, but for the rate of a connected VI; or the connection ends meanwhile",
    VIP_ERROR_RESOURCE="another tag while descriptors are on its queues",
    VIP_NOT_REACHABLE="the other node's agent is silent",
)
async def VipSetViAttributes(vi: Vi, attributes: ViAttributes) -> None:
    """Give a VI other attributes.

    An idle VI may have all of them changed; its tag only while its queues are empty (else VIP_ERROR_RESOURCE). The QoS
    of a connected VI may be changed, too: both cards are asked, and if one refuses (VIP_INVALID_QOS) the old one stays.
    Ends with VIP_INVALID_STATE for anything else, and as `VipCreateVi` does.
    """
    check_vi(vi)
    async with in_kernel(vi.nic):
        check_vi(vi)
        _check(vi.nic, attributes)
        renegotiates = replace(attributes, quality=vi.attributes.quality) == vi.attributes
        check_state(vi, ViState.IDLE, *([ViState.CONNECTED] if renegotiates else []))
        if vi.state is ViState.IDLE:
            if attributes.ptag is not vi.attributes.ptag and (len(vi.send) or len(vi.receive)):
                raise VipError(
                    VipReturn.VIP_ERROR_RESOURCE,
                    f"{vi}: descriptors of the old protection tag are on its queues: take them off first",
                )
            await agent_of(vi.nic).change_vi(vi, attributes)
            return
        request = agent_of(vi.nic).connector.rates.ask(vi, attributes.quality)
    await agent_of(vi.nic).connector.rates.settle(request)
    vi.nic.check()
    if request.outcome is not VipReturn.VIP_SUCCESS:
        assert request.outcome is not None
        raise VipError(
            request.outcome,
            f"{vi}: the other end's card does not grant the rate{request.reason}",
            acceptable_bytes_per_s=request.acceptable,
        )


def _check(nic: VipNic, attributes: ViAttributes) -> None:
    """Raise VipError for attributes that no VI of the card can have."""
    if not isinstance(attributes, ViAttributes):
        raise invalid(nic, f"{attributes!r}: ViAttributes")
    check_ptag(nic, attributes.ptag)
    if not isinstance(attributes.reliability, Reliability):
        levels = ", ".join(level.name for level in Reliability)
        raise VipError(
            VipReturn.VIP_INVALID_RELIABILITY_LEVEL,
            f"{nic}: reliability = {attributes.reliability!r}: one of {levels}",
        )
    if not 0 < attributes.most_bytes <= MOST_MESSAGE_BYTES:
        raise VipError(
            VipReturn.VIP_INVALID_MTU,
            f"{nic}: most_bytes = {attributes.most_bytes}: 1 to {MOST_MESSAGE_BYTES}",
        )
    if attributes.rdma_read and attributes.reliability not in RDMA_READ_LEVELS:
        raise VipError(
            VipReturn.VIP_INVALID_RDMAREAD,
            f"{nic}: RDMA reads need a reliable level, not {attributes.reliability.name}",
        )
    quality = attributes.quality
    if quality is not None and not (
        isinstance(quality, Quality)
        and 0 < quality.bytes_per_s <= MOST_BYTES_PER_S
        and 0 < quality.message_bytes <= MOST_MESSAGE_BYTES
    ):
        raise VipError(
            VipReturn.VIP_INVALID_QOS,
            f"{nic}: {quality}: a Quality of 1 to {MOST_BYTES_PER_S} bytes/s in messages of 1 to {MOST_MESSAGE_BYTES} "
            "bytes",
        )
