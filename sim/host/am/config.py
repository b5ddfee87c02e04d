"""The costs and choices of hosts with virtual networks."""

from __future__ import annotations

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.hdl.config import Config
from pydantic import Field, field_validator

from .policies import find_policy

__all__ = ["AmHostConfig"]


class AmHostConfig(Config):
    """A Sun UltraSPARC 1 of chun-1998 3.4, at 167 MHz, and the choices of its driver and library.

    The paper measures o_send = 4.09 us and o_recv = 4.28 us for a short message. It says that they go into writing the
    descriptor to the endpoint, and into reading it (5.1). Most of that is programmed I/O, which takes its time on the
    simulated bus. The times here are beside it, of the library and of the kernel. The paper gives no break-up of
    either, so `request_ns` and `handle_ns` are fitted to the two sums (`am-logp`).
    """

    credits: int = Field(
        4, ge=1, le=15, description="requests to an endpoint that may wait for their replies (4.2)"
    )
    policy: str = Field(
        "lru", description="which endpoint leaves its frame; name in `lanikai.sim.host.am.policies.POLICIES`"
    )
    residency_us: int | None = Field(
        None,
        ge=0,
        description="least time that an endpoint stays in its frame; None: as `residency_ns` derives it",
    )
    unload_patience_us: int | None = Field(
        None,
        ge=0,
        description="an unload that takes longer, as a node is silent, goes on beside others; None: four scans",
    )
    patience_us: int = Field(
        100_000,
        ge=1,
        description="a request without a reply for so long has the library ask whether the endpoint is still there",
    )
    request_ns: int = Field(
        1_670, ge=0, description="a request or reply: translation, credit, entry. Fitted to o_send = 4.09 us"
    )
    poll_ns: int = Field(
        60, ge=0, description="a look at an endpoint, beside its word; about 10 instructions"
    )
    look_ns: int = Field(
        20,
        ge=0,
        description="reading a word of a page in host memory that is in the cache: as `KitConfig.look_ns`",
    )
    handle_ns: int = Field(
        990, ge=0, description="taking a message and calling its handler. Fitted to o_recv = 4.28 us"
    )
    copy_ns_per_kb: int = Field(
        8_000,
        ge=0,
        description="copying 1024 bytes into a staging area, or into a segment: 128 MB/s, as source and target miss "
        "the cache. Assumption",
    )
    spin_ns: int = Field(
        500, ge=0, description="between two looks of a call that waits for a credit or for a free entry"
    )
    system_call_ns: int = Field(2_000, ge=0, description="into the kernel and back. Assumption")
    fault_ns: int = Field(
        5_000, ge=0, description="from a write to an unmapped page to the driver's queue: a trap. Assumption"
    )
    interrupt_ns: int = Field(
        8_000, ge=0, description="an interrupt and its handler, without its accesses to the card. Assumption"
    )
    wake_ns: int = Field(
        10_000, ge=0, description="from a thread's being woken to its running again: a switch. Assumption"
    )
    map_ns: int = Field(
        10_000, ge=0, description="mapping or unmapping a page, which all processors must hear of. Assumption"
    )
    pin_ns: int = Field(
        10_000,
        ge=0,
        description="pinning or unpinning a staging area for DMA: one call of the kernel's. Assumption",
    )

    @field_validator("policy")
    @classmethod
    def _is_there(cls, policy: str) -> str:
        find_policy(policy)
        return policy

    def copy_ns(self, length: int) -> int:
        """A copy of so many bytes, nanoseconds."""
        return -(-length * self.copy_ns_per_kb // 1024)

    def residency_ns(self, config: VirtualNetworkConfig) -> int:
        """The least time in a frame, nanoseconds.

        An endpoint that was loaded since a message came for it must stay until that has been of use. The message
        comes again as soon as its sender hears that the endpoint is there; if packets are lost, at a scan. Its process
        is woken, which takes an interrupt and a switch. Then it has as long again for it and what follows. So the
        default is two scans, an interrupt and a switch.

        On `lanai41` a page out and a page in take 0.51 ms, measured. So an endpoint is there for 2.02 ms of
        2.53 ms, and moves take a fifth of a frame's time.
        """
        if self.residency_us is not None:
            return 1000 * self.residency_us
        return 2000 * config.scan_us + self.interrupt_ns + self.wake_ns

    def unload_patience_ns(self, config: VirtualNetworkConfig) -> int:
        """The time after which another endpoint leaves its frame beside one that is still on its way, nanoseconds."""
        return 4000 * config.scan_us if self.unload_patience_us is None else 1000 * self.unload_patience_us
