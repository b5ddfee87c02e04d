"""The packet: its header as numbers and bits, its length, its CRC."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import HEADER_BITS, ROUTE_BITS, WORD_ROUTE_BITS, LinkConfig
from lanikai.hdl.packet import HEADER_LAYOUT, Header, Kind, crc32, packet_flits, packet_words

headers = st.builds(
    Header,
    kind=st.sampled_from(list(Kind)),
    **{
        name: st.integers(0, (1 << HEADER_LAYOUT[name].width) - 1)
        for name in Header.__dataclass_fields__
        if name != "kind"
    },
)
links = st.sampled_from([LinkConfig(flit_bits=bits) for bits in (32, 64, 128)])


@settings(max_examples=50, derandomize=True)
@given(headers)
def test_header_is_read_back(header):
    bits = header.pack()
    assert bits < 1 << HEADER_BITS
    assert Header.unpack(bits) == header


def test_header_fields_fill_the_header_once():
    """Every field's bits are its own, and together they are all 128."""
    total = 0
    for name, field in HEADER_LAYOUT:
        full = (1 << field.width) - 1
        bits = Header(**{name: Kind(5) if name == "kind" else full}).pack()
        expected = (5 if name == "kind" else full) << field.offset
        assert bits == expected, name
        assert total & full << field.offset == 0
        total |= full << field.offset
    assert total == (1 << HEADER_BITS) - 1
    # A router of 32-bit flits sees the first 24 bits of the route.
    assert HEADER_LAYOUT["route"].offset + WORD_ROUTE_BITS == 32
    assert HEADER_LAYOUT["route"].width == ROUTE_BITS


@pytest.mark.parametrize(("field", "value", "largest"), [("flow", 4096, 4095), ("length", -1, 65535)])
def test_a_field_that_does_not_fit_is_named(field, value, largest):
    with pytest.raises(ValueError, match=rf"^header field {field} = {value}: 0 to {largest}$"):
        Header(**{field: value}).pack()


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="15 is not a valid Kind"):
        Header.unpack(15)


@settings(max_examples=50, derandomize=True)
@given(headers, st.binary(max_size=100), links)
def test_packet_is_header_payload_and_crc(header, payload, link):
    header = Header(**{**header.__dict__, "length": len(payload)})
    words = packet_words(header, payload, link)
    assert len(words) == packet_flits(len(payload), link)
    assert all(0 <= word < 1 << link.flit_bits for word in words)
    body = b"".join(word.to_bytes(link.flit_bytes, "little") for word in words[:-1])
    assert Header.unpack(int.from_bytes(body[:16], "little")) == header
    assert body[16 : 16 + len(payload)] == payload
    assert not any(body[16 + len(payload) :])
    unrouted = Header(**{**header.__dict__, "route": 0}).pack().to_bytes(16, "little")
    assert words[-1] == zlib.crc32(unrouted + body[16:])


@settings(max_examples=30, derandomize=True)
@given(headers, st.integers(0, 23), st.binary(min_size=1, max_size=40), st.data())
def test_crc_sees_every_bit_but_the_route(header, shift, payload, data):
    """Routers shift the route, so it must not count; every other bit must."""
    link = LinkConfig(flit_bits=32)
    bits = header.pack()
    route = HEADER_LAYOUT["route"]
    sum_before = crc32(bits, payload, link)
    moved = bits & ~((1 << route.width) - 1 << route.offset) | header.route >> shift << route.offset
    assert crc32(moved, payload, link) == sum_before
    outside = [i for i in range(HEADER_BITS) if not route.offset <= i < route.offset + route.width]
    assert crc32(bits ^ 1 << data.draw(st.sampled_from(outside)), payload, link) != sum_before
    spot = data.draw(st.integers(0, len(payload) * 8 - 1))
    other = bytearray(payload)
    other[spot // 8] ^= 1 << spot % 8
    assert crc32(bits, bytes(other), link) != sum_before


def test_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"^header.length = 3: the payload has 2 bytes$"):
        packet_words(Header(length=3), b"ab", LinkConfig(flit_bits=64))
