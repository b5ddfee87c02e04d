"""Registers from SystemRDL: each is declared once, in an `.rdl` file; RTL, accessors and docs read it.

The compiler's result for a file is kept beside Python's own compiled modules (`__pycache__`). Its name holds the hash
of the file and of this module. The compiler's import alone takes a quarter of a second, and a run starts three
processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

__all__ = ["Field", "Register", "declare", "load", "merge"]

_DEFAULTS = "default regwidth = 32; default sw = rw; default hw = r;"


@dataclass(frozen=True)
class Field:
    """A field of a register, and the accesses that it allows.

    - `name`, `low` bit, `width` in bits, `doc`: its declaration.
    - `sw_readable`: software reads it.
    - `sw_writable`: software writes it.
    - `write_one_clears`: software clears it by writing ones.
    - `hw_writable`: hardware shows its own value in it.
    """

    name: str
    low: int
    width: int
    doc: str
    sw_readable: bool
    sw_writable: bool
    hw_writable: bool
    write_one_clears: bool

    @property
    def stored(self) -> bool:
        """Whether it is plain storage: software writes it, and reads back what it wrote."""
        return self.sw_readable and self.sw_writable and not (self.hw_writable or self.write_one_clears)

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return (1 << self.width) - 1 << self.low


@dataclass(frozen=True)
class Register:
    """A 32-bit register: `name`, `offset` in bytes, `doc`, `fields` by name."""

    name: str
    offset: int
    doc: str
    fields: Mapping[str, Field]

    def pack(self, **values: int) -> int:
        """The register's word with these fields, the others zero.

        Raises ValueError for a bad name or value.
        """
        word = 0
        for name, value in values.items():
            field = self.fields.get(name)
            if field is None:
                raise ValueError(f"register {self.name}: no field {name!r}; it has {', '.join(self.fields)}")
            if not 0 <= value < 1 << field.width:
                raise ValueError(f"register {self.name}.{name} = {value}: 0 to {(1 << field.width) - 1}")
            word |= value << field.low
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Field values of a word read from the register."""
        return {name: (word & field.mask) >> field.low for name, field in self.fields.items()}


@cache
def load(path: Path, addrmap: str | None = None) -> Mapping[str, Register]:
    """The registers of an `.rdl` file by name, in address order. Raises systemrdl's RDLCompileError.

    They are those of its address map `addrmap`, by default of the last one.
    """
    content = hashlib.sha256(path.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    which = f"{path.name}.{addrmap}" if addrmap else path.name
    kept = path.parent / "__pycache__" / f"{which}.{content[:32]}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return _from_json(kept.read_text())
    registers = _compile(path, addrmap)
    # As with Python's own compiled modules, a result that cannot be kept is made anew every time.
    with contextlib.suppress(OSError):
        kept.parent.mkdir(exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps([asdict(register) for register in registers.values()]))
        partial.replace(kept)
    return registers


def declare(text: str) -> Mapping[str, Register]:
    """The registers that `text` declares in SystemRDL (`reg { ... } NAME @ 0x3a0;`), by name, in address order.

    They are for a block of a few registers, which needs no file beside it. Software reads and writes, hardware reads,
    as long as the text says nothing else. The text is compiled at each import, in about half a second. Raises
    systemrdl's RDLCompileError.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "declared.rdl"
        path.write_text(f"addrmap declared {{ {_DEFAULTS}\n{text}\n}};\n")
        return _compile(path, None)


def merge(*declarations: Mapping[str, Register]) -> dict[str, Register]:
    """One map of several, by name, in address order.

    A register that more than one declares has the fields of all, and the text of the first that has one. Raises
    ValueError where two declarations differ on a register's offset, or want the same offset, field or bit.
    """
    found: dict[str, Register] = {}
    for name, register in (item for declaration in declarations for item in declaration.items()):
        first = found.get(name)
        if first is None:
            found[name] = register
            continue
        if first.offset != register.offset:
            raise ValueError(f"register {name}: at {first.offset:#05x} and at {register.offset:#05x}")
        for field in register.fields.values():
            for other in first.fields.values():
                if field.name == other.name or field.mask & other.mask:
                    raise ValueError(f"register {name}: field {field.name!r} is where {other.name!r} is")
        fields = sorted((*first.fields.values(), *register.fields.values()), key=lambda field: field.low)
        found[name] = replace(
            first, doc=first.doc or register.doc, fields={field.name: field for field in fields}
        )
    ordered = sorted(found.values(), key=lambda register: register.offset)
    for one, following in itertools.pairwise(ordered):
        if one.offset == following.offset:
            raise ValueError(f"registers {one.name} and {following.name}: both at {one.offset:#05x}")
    return {register.name: register for register in ordered}


def _from_json(text: str) -> dict[str, Register]:
    """The registers that `load` has kept."""
    found = {}
    for values in json.loads(text):
        fields = {name: Field(**field) for name, field in values.pop("fields").items()}
        found[values["name"]] = Register(**values, fields=fields)
    return found


def _compile(path: Path, addrmap: str | None) -> dict[str, Register]:
    from systemrdl import RDLCompiler
    from systemrdl.node import RegNode

    compiler = RDLCompiler()
    compiler.compile_file(str(path))
    registers = {}
    for node in compiler.elaborate(top_def_name=addrmap).top.children(unroll=True):
        assert isinstance(node, RegNode)
        fields = {
            f.inst_name: Field(
                name=f.inst_name,
                low=f.low,
                width=f.width,
                doc=f.get_property("desc") or "",
                sw_readable=f.is_sw_readable,
                sw_writable=f.is_sw_writable,
                hw_writable=f.is_hw_writable,
                write_one_clears=f.get_property("onwrite") is not None,
            )
            for f in node.fields()
        }
        registers[node.inst_name] = Register(
            name=node.inst_name,
            offset=node.address_offset,
            doc=node.get_property("desc") or "",
            fields=fields,
        )
    return registers
