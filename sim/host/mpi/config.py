"""The costs of the MPI layer for its host, and the sizes of its buffers: each in one place, with its source.

**The fit** (gulati-thesis-2001 5.5.1, figure 5.9). It is published that the MPI level's bandwidth is flat, in the range
of 50 MB/s, for every IDT below 140, while GM's goes on rising. So something in the host takes longer for a packet than
the card does. GM sends from and receives into DMA-able memory only (4.1). So this layer copies every byte into
registered memory at the sender and out of it at the receiver. The copies take the time.

`MpiCosts.copy_ns_per_kb` is fitted on the one number 140, the IDT of the knee:

- A 64 KB message is 18 packets of its flow. These are its announcement, and 65536 + 5 * 32 bytes in five fragments of
  at most 16384, which are 4 + 4 + 4 + 4 + 1 packets.
- At IDT 140 (70 us) it takes 18 * 70 = 1260 us, which are 52.0 MB/s.
- The host may take 2.5% less, 1229 us. It must be so much faster for packets to queue in the card within a few
  messages. Otherwise IDT 140 would not be what limits the flow, nor its share beside another one.
- The host's steps are (`estimate.host_ns`) the copies of 65536 bytes; and a look at the message and a buffer given
  back, for each of five fragments and the announcement.
- So 19 us are left for the copies of 1024 bytes.

That the level of 53.3 MB/s is "in the range of 50 MB/s" is a result, and so are the shares of mpi-share.

To do the fit again after GM's costs have changed, run `lanikai run mpi-idt --set "idt_ticks=[0, 140]"`. Change
`copy_ns_per_kb` until the MPI level's bandwidth at IDT 0 is 53.3 MB/s, within 0.1. The time of a message is
proportional to it except for the other steps, about 1% of the whole.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Self

from lanikai.firmware.gm.config import GmConfig
from lanikai.hdl.config import Config, ConfigError, NicConfig
from pydantic import Field, model_validator

from .envelope import HEADER_BYTES

__all__ = ["MpiConfig", "MpiCosts"]


class MpiCosts(Config):
    """The costs of MPI calls on a 300 MHz Pentium II (gulati-thesis-2001 5.1), beside those of the GM calls they make
    (`HostConfig`).

    They are instruction counts at one instruction a cycle, except for the copy, which is fitted (see above). It is
    about 54 MB/s, where the machine's memory bus is shared with the card's DMA.
    """

    call_ns: int = Field(400, ge=0, description="an MPI call: checks, request; about 120 instructions")
    match_ns: int = Field(
        30, ge=0, description="one entry of a queue that is looked at: a cache hit, compares"
    )
    message_ns: int = Field(600, ge=0, description="make or read a header, follow it; about 180 instructions")
    copy_ns_per_kb: int = Field(19_000, ge=0, description="copy 1024 bytes between user and DMA-able memory")
    reduce_ns_per_kb: int = Field(
        9_000,
        ge=0,
        description="combine 1024 bytes of two vectors: half a copy's bus traffic, and the operation",
    )

    def copy_ns(self, length: int) -> int:
        """Nanoseconds of a copy of `length` bytes, rounded up."""
        return -(-length * self.copy_ns_per_kb // 1024)

    def reduce_ns(self, length: int) -> int:
        """Nanoseconds of an operation on two vectors of `length` bytes, rounded up."""
        return -(-length * self.reduce_ns_per_kb // 1024)

    def cycles(self, nanoseconds: int, nic: NicConfig) -> int:
        """NIC clock cycles of a time, rounded up; 0 stays 0."""
        exact = Fraction(nanoseconds * nic.clock_hz, 1_000_000_000)
        return -(-exact.numerator // exact.denominator)


class MpiConfig(Config):
    """Sizes of a rank's buffers and the border between the protocols.

    A message of at most `eager_bytes` is *eager*: it goes at once, behind its header. A longer one is announced and
    goes when its receive has been found (*rendezvous*). It goes in fragments, so that it may be longer than all
    buffers.
    """

    fragment_bytes: int = Field(
        16384, ge=64, le=65536, description="longest GM message of a rank, its header included"
    )
    eager_bytes: int = Field(
        16384 - HEADER_BYTES,
        ge=0,
        description="longest message that goes eagerly; at most a fragment's payload",
    )
    data_sends: int = Field(8, ge=1, description="buffers for fragments on their way out")
    control_sends: int = Field(8, ge=1, description="buffers for grants and credits on their way out")
    data_receives: int = Field(24, ge=1, description="buffers for fragments; shared out to peers as credits")
    control_receives: int = Field(8, ge=1, description="buffers for grants and credits")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.eager_bytes > self.payload_bytes:
            raise ValueError(
                f"eager_bytes = {self.eager_bytes}: at most {self.payload_bytes}, a fragment's payload"
            )
        return self

    @property
    def payload_bytes(self) -> int:
        """Payload of a full fragment."""
        return self.fragment_bytes - HEADER_BYTES

    def credits(self, ranks: int) -> int:
        """Fragments that each of a rank's peers may send without hearing from it.

        With more peers than buffers it is one, and GM holds back a fragment that finds no buffer.
        """
        return max(1, self.data_receives // max(1, ranks - 1))

    @classmethod
    def for_gm(cls, gm: GmConfig, nic: NicConfig, **changes: object) -> MpiConfig:
        """Sizes that fit the card: four packets a fragment, half of the send tokens for each kind, three of four
        receive tokens for fragments. `changes` win. Raises ConfigError."""
        fragment = int(str(changes.get("fragment_bytes", min(4 * nic.mtu_bytes, 65536))))
        if gm.send_tokens < 2 or gm.receive_tokens < 2:
            raise ConfigError("MPI needs 2 send tokens and 2 receive tokens a port at least")
        control_receives = max(1, gm.receive_tokens // 4)
        fitted: dict[str, object] = {
            "fragment_bytes": fragment,
            "eager_bytes": fragment - HEADER_BYTES,
            "data_sends": (gm.send_tokens + 1) // 2,
            "control_sends": gm.send_tokens // 2,
            "data_receives": gm.receive_tokens - control_receives,
            "control_receives": control_receives,
        }
        return cls(**fitted | changes)
