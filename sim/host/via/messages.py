"""Messages of kernel agents: what two nodes say to each other to connect VIs and to part them.

A message is a packet of `CONTROL_PACKET_BYTES` between the agents' channels. `link` brings each across once, in order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

from lanikai.firmware.via.wire import CONTROL_PACKET_BYTES

from .attributes import MOST_DISCRIMINATOR_BYTES, NetAddress, Quality, Reliability, ViAttributes
from .errors import VipReturn

__all__ = ["Message", "MessageKind"]

_FORM = struct.Struct("<BBHHHHHBBIIIBB16s16s")
assert _FORM.size <= CONTROL_PACKET_BYTES
_WRITE, _READ = 1, 2


class MessageKind(IntEnum):
    """Kinds of messages."""

    ACK = 0  # of the link: the message of this number has come
    REQUEST = 1  # a client asks a server that waits
    PEER_REQUEST = 2  # a peer asks its like
    ACCEPT = 3  # to either: the VI here is ready
    REFUSE = 4  # to either: no, for `code`
    CONFIRM = 5  # to ACCEPT: the VI here is ready too
    CANCEL = 6  # to ACCEPT, or after a request: it is not wanted any more
    DISCONNECT = 7  # a connection has ended
    RATE = 8  # the sender's VI asks for another rate
    RATE_ANSWER = 9  # to RATE: `code`


_REFUSING = (MessageKind.REFUSE, MessageKind.RATE_ANSWER)


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message.

    - `number`: the link's, modulo 2^16.
    - `code`: of a refusal, and of a cancelled request: why.
    - `request`: the number of the request that it belongs to, by the node that has asked.
    - `channel`, `peer`: the sender's VI, and the receiver's if it is known, else 0.
    - `connection`: the connection's number, of ACCEPT on.
    - `attributes`: those of the sender's VI, without its tag.
    - `acceptable_bytes_per_s`: of a refusal for VIP_INVALID_QOS, the bandwidth that would be accepted; 0 for none.
    - `local`, `remote`: discriminators: the sender's, the receiver's.
    """

    kind: MessageKind
    number: int = 0
    code: VipReturn = VipReturn.VIP_SUCCESS
    request: int = 0
    channel: int = 0
    peer: int = 0
    connection: int = 0
    attributes: ViAttributes = field(default_factory=ViAttributes)
    acceptable_bytes_per_s: int = 0
    local: bytes = b""
    remote: bytes = b""

    def pack(self) -> bytes:
        """The packet. Raises ValueError for what does not fit."""
        for name in (self.local, self.remote):
            if len(name) > MOST_DISCRIMINATOR_BYTES:
                raise ValueError(f"discriminator {name!r}: at most {MOST_DISCRIMINATOR_BYTES} bytes")
        attributes = self.attributes
        quality = attributes.quality or Quality(bytes_per_s=0, message_bytes=0)
        rate = self.acceptable_bytes_per_s if self.kind in _REFUSING else quality.bytes_per_s
        try:
            return _FORM.pack(
                self.kind,
                self.code,
                self.number,
                self.request,
                self.channel,
                self.peer,
                self.connection,
                attributes.reliability,
                _WRITE * attributes.rdma_write | _READ * attributes.rdma_read,
                attributes.most_bytes,
                rate,
                quality.message_bytes,
                len(self.local),
                len(self.remote),
                self.local,
                self.remote,
            ).ljust(CONTROL_PACKET_BYTES, b"\0")
        except struct.error as error:
            raise ValueError(f"message of agents: a field does not fit: {error}") from None

    @classmethod
    def unpack(cls, packet: bytes) -> Message | None:
        """The message in a packet; None for what is none."""
        fields = _FORM.unpack_from(packet)
        kind, code, number, request, channel, peer, connection, level, flags, most, rate, size = fields[:12]
        lengths, names = fields[12:14], fields[14:]
        try:
            kind, code, level = MessageKind(kind), VipReturn(code), Reliability(level)
        except ValueError:
            return None
        if max(lengths) > MOST_DISCRIMINATOR_BYTES:
            return None
        refuses = kind in _REFUSING
        quality = None if refuses or not rate else Quality(bytes_per_s=rate, message_bytes=size)
        return cls(
            kind=kind,
            code=code,
            number=number,
            request=request,
            channel=channel,
            peer=peer,
            connection=connection,
            attributes=ViAttributes(
                reliability=level,
                most_bytes=most,
                quality=quality,
                rdma_write=bool(flags & _WRITE),
                rdma_read=bool(flags & _READ),
            ),
            acceptable_bytes_per_s=rate if refuses else 0,
            local=names[0][: lengths[0]],
            remote=names[1][: lengths[1]],
        )

    def from_address(self, node: int) -> NetAddress:
        """The sender's address, if the packet came from `node`."""
        return NetAddress(node, self.local)
