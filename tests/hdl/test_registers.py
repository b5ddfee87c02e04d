"""Registers read from their declaration: places, fields, who may do what, and exact errors."""

from pathlib import Path

import lanikai.hdl.nic
import pytest
from lanikai.hdl.registers import load

FOLDER = Path(lanikai.hdl.nic.__file__).parent


@pytest.mark.parametrize("name", ["nic", "host"])
def test_registers_are_distinct_words_in_order(name):
    registers = list(load(FOLDER / f"{name}.rdl").values())
    offsets = [register.offset for register in registers]
    assert offsets == sorted(set(offsets)) and all(offset % 4 == 0 for offset in offsets)
    for register in registers:
        masks = [field.mask for field in register.fields.values()]
        assert sum(masks) < 1 << 32
        assert sum(mask.bit_count() for mask in masks) == sum(masks).bit_count(), register.name
        assert register.doc


def test_fields_say_who_may_do_what():
    nic = load(FOLDER / "nic.rdl")
    control = nic["HOST_DMA_CONTROL"].fields
    assert (control["bytes"].low, control["bytes"].width, control["bytes"].stored) == (0, 16, True)
    busy = control["busy"]
    assert (busy.sw_readable, busy.sw_writable, busy.hw_writable, busy.stored) == (True, False, True, False)
    assert nic["ISR"].fields["timer"].write_one_clears and not nic["ISR"].fields["timer"].stored
    assert not nic["ISR"].fields["dispatch"].sw_writable
    assert not nic["RATE_COMMAND"].fields["enqueue"].sw_readable
    assert nic["RATE_NDT"].fields["ticks"].sw_writable and not nic["RATE_NDT"].fields["ticks"].stored
    assert load(FOLDER / "host.rdl")["HOST_IMR"].fields["mask"].stored


def test_what_is_kept_is_what_the_file_says(tmp_path):
    """A file is compiled once and read back the same. A changed file is compiled anew; a damaged copy is not
    believed."""
    path = tmp_path / "nic.rdl"
    path.write_text((FOLDER / "nic.rdl").read_text())
    load.cache_clear()
    first = load(path)
    (kept,) = (tmp_path / "__pycache__").iterdir()
    load.cache_clear()
    assert load(path) == first == load(FOLDER / "nic.rdl")
    kept.write_text("[{")
    load.cache_clear()
    assert load(path) == first
    path.write_text(path.read_text().replace("TIMER @", "ALARM @"))
    load.cache_clear()
    assert list(load(path)) == [{"TIMER": "ALARM"}.get(name, name) for name in first]


def test_pack_and_unpack():
    register = load(FOLDER / "nic.rdl")["SEND_CONTROL"]
    word = register.pack(bytes=0x1234, vl=5)
    assert word == 0x0005_1234
    assert register.unpack(word | 1 << 31) == {"bytes": 0x1234, "vl": 5, "busy": 1}
    with pytest.raises(ValueError) as error:
        register.pack(length=1)
    assert str(error.value) == "register SEND_CONTROL: no field 'length'; it has bytes, vl, busy"
    with pytest.raises(ValueError) as error:
        register.pack(vl=16)
    assert str(error.value) == "register SEND_CONTROL.vl = 16: 0 to 15"
