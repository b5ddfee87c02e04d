"""Verilog of modules that mostly have nothing to do, made one branch that is passed over in most cycles.

A simulator evaluates all gates of a module in every cycle. A module that says when it has anything to do
(`lanikai.hdl.working`) gets blocks of statements instead of its gates, with those of its instances among them:

- `always @*`: what its outputs follow from, in `if (working)`; its outputs are 0 otherwise.
- `always @(edge clk)`: the rest, and then its registers and memories, in `if (working)`.

Both forms are the same design, to the cycle, if the module keeps to what it says and is never reset. No instance of a
composition is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from lanikai.hdl.working import WORKING

__all__ = ["branched"]

_CLOCK = "clk"
_MODULE = re.compile(r"^module (\\\S+ |\w+) ?\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r"\A[^;]*;")
"""A module's header, which Yosys wraps where it is long."""
_GUARDED = re.compile(rf"^  (?:wire|reg) {WORKING};$", re.MULTILINE)
_NAME = r"(?:\\\S+ |[A-Za-z_][\w$]*)"
_TOKEN = re.compile(rf"\d*'[bodh][0-9a-fxz?_]+|\d+|{_NAME}")
_PLAIN = re.compile(rf"  assign {_NAME} ?= (~ )?{_NAME} ?;")
_PORT = re.compile(rf" *\.({_NAME})\((.*)\),?")
_STARTER = re.compile(r"^ *(?:reg|initial|if \() ?\\\$auto\$verilog_backend")
_KEYWORDS = {"always", "assign", "begin", "case", "casez", "default", "edge", "else", "end", "endcase", "if"}
_KEYWORDS |= {"initial", "input", "output", "posedge", "reg", "wire"}


@dataclass(frozen=True)
class _Item:
    """An item of a module: its text, the names in it, and those of them that it sets if it is a gate."""

    text: str
    names: frozenset[str]
    sets: frozenset[str] = frozenset()

    def starts(self, *beginnings: str) -> bool:
        return self.text.startswith(beginnings)

    @property
    def is_gate(self) -> bool:
        return self.starts("  assign ", "  always @*")

    @property
    def is_clocked(self) -> bool:
        return self.starts("  always @(")


def branched(text: str) -> str:
    """`text` (as `to_verilog` writes it) with every module that has the wire in the form of branches.

    Raises ValueError if the gates of such a module stand in a loop.
    """
    modules = {
        found[1].strip(): _HEADER.sub(lambda header: header[0].replace("\n", " "), found[0])
        for found in _MODULE.finditer(text)
    }

    def rewritten(found: re.Match[str]) -> str:
        if not _GUARDED.search(found[0]):
            return found[0]
        name = found[1].strip()
        header = modules[name].partition("\n")[0]
        return "\n".join([header, *(item.text for item in _items(name, modules)), "endmodule"])

    return _MODULE.sub(rewritten, text)


def _items(name: str, modules: Mapping[str, str]) -> list[_Item]:
    """The items of a module, in the form of branches if it has the wire."""
    text = modules[name]
    items = [_item(one) for one in _split(text.split("\n")[1:-1])]
    if not _GUARDED.search(text):
        return items
    flat = list(_flat(items, modules))
    gates, registers = [item for item in flat if item.is_gate], [item for item in flat if item.is_clocked]
    outputs = frozenset(one for item in flat if item.starts("  output ") for one in item.names)
    order, needs = _ordered(name, gates)
    ahead = _behind((number for number, gate in enumerate(gates) if WORKING in gate.sets), needs)
    # A register's value and its complement hold all the time.
    for number in order:
        if _PLAIN.fullmatch(gates[number].text) and needs[number] <= ahead:
            ahead.add(number)
    shown = _behind((number for number, gate in enumerate(gates) if gate.sets & outputs), needs)
    # What only registers take may follow from what follows from the outputs.
    for_outputs = [gates[number] for number in order if number in shown - ahead]
    for_registers = [gates[number] for number in order if number not in shown | ahead]
    moved = frozenset(one for gate in (*for_outputs, *for_registers) for one in gate.sets)
    found = [_variable(item, moved) for item in flat if not (item.is_gate or item.is_clocked)]
    found += [gates[number] for number in order if number in ahead]
    if for_outputs:
        found.append(_gate_branch(for_outputs, outputs))
    if registers:
        found.append(_clocked_branch(for_registers, registers))
    return found


def _split(lines: Iterable[str]) -> Iterator[str]:
    """The items of a module's text. A line that is indented by two begins one, if it does not end one."""
    item: list[str] = []
    for line in lines:
        # A simulator that compiles needs no start of blocks (`hdl/emit.py`): it settles all of them in the beginning.
        if _STARTER.match(line):
            continue
        if item and re.match(r"  [^ ]", line) and not line.startswith(("  end", "  );")):
            yield "\n".join(item)
            item = []
        item.append(line)
    if item:
        yield "\n".join(item)


def _item(text: str) -> _Item:
    sets: set[str] = set()
    if text.startswith("  assign "):
        sets = set(_names(text.removeprefix("  assign ").split(" = ")[0]))
    elif text.startswith("  always @*"):
        sets = {name for line in text.split("\n") if " = " in line for name in _names(line.split(" = ")[0])}
    return _Item(text, frozenset(_names(text)), frozenset(sets))


def _names(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        if not (token[0].isdigit() or token[0] == "'" or token in _KEYWORDS):
            yield token.strip()


def _flat(items: Iterable[_Item], modules: Mapping[str, str]) -> Iterator[_Item]:
    """The items with those of instances in their place, under names of their own."""
    for item in items:
        if not item.text.endswith("\n  );"):
            yield item
            continue
        head, *ports, _ = item.text.split("\n")
        module, name = _names(head)
        inner = list(_flat(_items(module, modules), modules))
        inputs = {one for part in inner if part.starts("  input ") for one in part.names}
        for part in inner:
            if not part.starts("  input ", "  output ", f"  wire {_CLOCK};"):
                yield _renamed(part, name)
        for port in ports:
            found = _PORT.fullmatch(port)
            assert found, port
            pin, wire = found[1].strip(), found[2]
            if wire and pin != _CLOCK:
                own = _written(_inside(pin, name))
                yield _item(f"  assign {own} = {wire};" if pin in inputs else f"  assign {wire} = {own};")


def _inside(name: str, instance: str) -> str:
    """The name that `name` of an instance has outside of it."""
    return "\\" + instance.removeprefix("\\") + "." + name.removeprefix("\\")


def _written(name: str) -> str:
    """A name as it stands in Verilog: an escaped one ends with a space."""
    return f"{name} " if name.startswith("\\") else name


def _renamed(item: _Item, instance: str) -> _Item:
    def other(found: re.Match[str]) -> str:
        name = found[0].strip()
        if name not in item.names or name == _CLOCK:
            return found[0]
        return _written(_inside(name, instance))

    names, sets = (frozenset(_inside(one, instance) for one in some) for some in (item.names, item.sets))
    return _Item(_TOKEN.sub(other, item.text), names, sets)


def _ordered(name: str, gates: list[_Item]) -> tuple[list[int], list[set[int]]]:
    """The gates' numbers in an order in which each comes after those whose values it takes; and those, for each."""
    makers: dict[str, list[int]] = {}
    for number, gate in enumerate(gates):
        for one in gate.sets:
            makers.setdefault(one, []).append(number)
    needs = [{maker for one in gate.names - gate.sets for maker in makers.get(one, ())} for gate in gates]
    try:
        return list(TopologicalSorter(dict(enumerate(needs))).static_order()), needs
    except CycleError as error:
        loop = sorted({one for number in error.args[1] for one in gates[number].sets})
        raise ValueError(f"module {name}: its gates stand in a loop: {', '.join(loop)}") from None


def _behind(numbers: Iterable[int], needs: list[set[int]]) -> set[int]:
    """The gates `numbers` and all that their values follow from."""
    left, found = list(numbers), set[int]()
    while left:
        number = left.pop()
        if number not in found:
            found.add(number)
            left += needs[number]
    return found


def _variable(item: _Item, moved: frozenset[str]) -> _Item:
    """The declaration of a variable that a block of statements sets."""
    if item.starts("  wire ") and item.names & moved:
        return _Item(item.text.replace("  wire ", "  reg ", 1), item.names)
    return item


def _gate_branch(gates: list[_Item], outputs: frozenset[str]) -> _Item:
    """`gates`, in this order, as a block of statements."""
    sets = frozenset(one for gate in gates for one in gate.sets)
    lines = [f"    {_written(one)} = 0;" for one in sorted(sets & outputs)]
    lines += [f"    if ({WORKING}) begin", *_statements(gates), "    end"]
    names = frozenset(one for gate in gates for one in gate.names) | {WORKING}
    return _Item("\n".join(["  always @* begin", *lines, "  end"]), names, sets)


def _clocked_branch(gates: list[_Item], registers: list[_Item]) -> _Item:
    """`gates`, in this order, and then what `registers` take from them, as a block of statements at the edge."""
    lines = [
        registers[0].text.partition("\n")[0].removesuffix(" begin") + " begin",
        f"    if ({WORKING}) begin",
    ]
    lines += _statements(gates)
    for register in registers:
        lines += [f"  {line}" for line in _body(register.text)]
    names = frozenset(one for item in (*gates, *registers) for one in item.names) | {WORKING}
    return _Item("\n".join([*lines, "    end", "  end"]), names)


def _statements(gates: list[_Item]) -> Iterator[str]:
    """Gates as statements of a block."""
    for gate in gates:
        if gate.starts("  assign "):
            yield f"      {gate.text.removeprefix('  assign ')}"
        else:
            yield from (f"  {line}" for line in _body(gate.text))


def _body(block: str) -> list[str]:
    """The statements of an `always` block."""
    head, *lines = block.split("\n")
    return lines[:-1] if head.endswith(" begin") else lines
