"""Verilog as Yosys writes it, made readable: plain names, a list of typed ports, few temporaries, one text a module."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .expression import NAME, Expression, names, parse, put, width, write

__all__ = ["RESERVED", "Module", "Port", "tidy"]

MOST_LETTERS = 110
"""Longest line that an expression may make by taking a wire's place."""

RESERVED = frozenset(
    (  # noqa: SIM905
        "always and assert assign assume automatic before begin bind bit break buf byte case cell class "
        "clocking config const constraint context continue cover cross deassign default design disable dist "
        "do edge else end enum event expect export extends extern final first_match for force forever fork "
        "function generate genvar global if iff ifnone import include initial inout input inside int integer "
        "interface join large let library local logic longint macromodule matches medium modport module nand "
        "negedge new nor not null or output package packed parameter pmos posedge primitive priority program "
        "property protected pull0 pull1 pure rand randc ref reg release repeat return rtran sequence shortint "
        "signed small solve specify static string strong0 strong1 struct super supply0 supply1 table tagged "
        "task this throughout time tran tri type typedef union unique unsigned use var virtual void wait wand "
        "weak0 weak1 while wildcard wire with within wor xnor xor "
    ).split()
)
"""Words of Verilog and SystemVerilog, which are no names there."""
_IDENTIFIER = re.compile(r"\\\S+ |(?<![\w'$\\])[A-Za-z_]\w*")
_MODULE = re.compile(r"^module (\\\S+ |[\w$]+) ?\(([^)]*)\);\n(.*?)^endmodule\n", re.MULTILINE | re.DOTALL)
_EMPTY = re.compile(r"^  wire \[-1:0\] .*\n", re.MULTILINE)
"""Wires of no bits, which Verilog does not have: nothing is ever joined to them."""
_DECLARED = re.compile(r"  (input|output|inout|wire|reg) (\[\d+:\d+\] )?(\w+)( \[[\d:]+\])?( = [^;]+)?;$")
_STATEMENT = re.compile(r"(\s*(?:assign )?)([A-Za-z_]\w*(?:\[[\d:]+\])?)( <?= )(.*);$")
_CONDITION = re.compile(r"(\s*(?:end )?(?:else )?(?:if|casez?) \()(.*)(\)(?: begin)?)$")
_INSTANCE = re.compile(r"^  (\\\S+ |[A-Za-z_]\w*) +(\\\S+ |[A-Za-z_]\w*) ?\($")
_PIN = re.compile(r"^    \.(\\\S+ |[A-Za-z_]\w*) ?\((.*?)\)(,?)$")
_UNNAMED = re.compile(r"(?:\\?\$|_)(\d+)_?")
_ATTRIBUTE = re.compile(r"^\s*\(\*.*?\*\)\n", re.MULTILINE)
_REGISTER = re.compile(r"    (\w+) <= (\w+);$")


@dataclass(frozen=True, kw_only=True)
class Port:
    """A port of a module: its `name`, its `direction` (`input`, `output`), its `bits`."""

    name: str
    direction: str
    bits: int


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module: its `name`, its `ports` in order, its `text`."""

    name: str
    ports: tuple[Port, ...]
    text: str


def tidy(text: str, *, ports: Sequence[str], outside: Mapping[str, str] | None = None) -> list[Module]:
    """The modules of `text` (`lanikai.hdl.emit.to_verilog`), made readable, the top module first.

    - `ports`: the top module's ports in the order that they are to have; others have inputs before outputs.
    - `outside`: names of modules that the text has instances of and that are elsewhere, by their names in it.

    Behaviour is that of `text`. Names of ports and registers are those of the source, with `_` for each letter that a
    plain name has not. A wire that one expression makes and one expression uses is put into it, if its line stays
    readable. Wires that nothing reads are left out. What is left of unnamed wires is called `t1`, `t2` and so on.
    """
    bodies = {
        found[1].strip(): found[3] for found in _MODULE.finditer(_EMPTY.sub("", _ATTRIBUTE.sub("", text)))
    }
    top = next(iter(bodies))
    modules = {**_plain_names(list(bodies)), **(outside or {})}
    inside = {name: _plain_names(_identifiers(body)) for name, body in bodies.items()}
    return [
        _module(body, name, modules, inside, ports if name == top else ()) for name, body in bodies.items()
    ]


def _identifiers(body: str) -> list[str]:
    """Every name in a module's text but reserved words, as it stands there without a closing space."""
    found = (match[0].strip() for match in _IDENTIFIER.finditer(body))
    return [name for name in dict.fromkeys(found) if name not in RESERVED]


def _plain_names(found: Sequence[str]) -> dict[str, str]:
    """A plain name for each of `found`, all different. Names that are plain already are kept."""
    taken: set[str] = set()
    plain: dict[str, str] = {}
    for name in sorted(found, key=lambda name: (name.startswith("\\"), bool(_UNNAMED.fullmatch(name)))):
        new = name.removeprefix("\\")
        if "verilog_backend" in new:
            new = "start"
        elif unnamed := _UNNAMED.fullmatch(new):
            new = f"t{unnamed[1]}"
        new = re.sub(r"\W+", "_", new)
        new = f"n{new}" if new[:1].isdigit() else new
        while new in taken or new in RESERVED:
            new += "_"
        taken.add(new)
        plain[name] = new
    return plain


def _module(
    body: str,
    name: str,
    modules: Mapping[str, str],
    inside: Mapping[str, Mapping[str, str]],
    order: Sequence[str],
) -> Module:
    """One module, from the text between its list of ports and its end."""
    plain = inside[name]
    lines: list[str] = []
    pins: Mapping[str, str] = {}

    def renamed(text: str) -> str:
        return _IDENTIFIER.sub(
            lambda match: match[0] if match[0] in RESERVED else plain[match[0].strip()], text
        )

    for line in body.splitlines():
        if instance := _INSTANCE.match(line):
            kind = instance[1].strip()
            pins = inside.get(kind, {})
            lines.append(f"  {modules[kind]} {renamed(instance[2]).strip()} (")
        elif pin := _PIN.match(line):
            outer = pin[1].strip()
            lines.append(f"    .{pins.get(outer, outer)}({_spaced(renamed(pin[2]))}){pin[3]}")
        else:
            lines.append(_spaced(renamed(line)))
    return _written(lines, modules[name], {plain[one] for one in plain if _UNNAMED.fullmatch(one)}, order)


def _spaced(line: str) -> str:
    """`line` without the spaces that closed escaped names, but for those in front of a memory's rows."""
    line = re.sub(r" +([,;)])", r"\1", line)
    return line if _DECLARED.match(line) else re.sub(r"(\w) +\[", r"\1[", line)


def _written(lines: Sequence[str], name: str, unnamed: set[str], order: Sequence[str]) -> Module:
    """The module of these lines: its wires joined, its declarations and ports in order."""
    directions: dict[str, str] = {}
    kinds: dict[str, tuple[str, str, str]] = {}
    body: list[str] = []
    for line in lines:
        declared = _DECLARED.match(line)
        if not declared:
            body.append(line)
        elif declared[1] in ("wire", "reg"):
            kinds[declared[3]] = (
                declared[1] + " " + (declared[2] or ""),
                declared[4] or "",
                declared[5] or "",
            )
        else:
            directions[declared[3]] = declared[1]
    widths = {one: _bits(kind) for one, (kind, rows, _) in kinds.items() if not rows}
    following = _following(body, unnamed, kinds.keys())
    body = [NAME.sub(lambda found: following.get(found[0], found[0]), line) for line in body]
    kinds = {following.get(one, one): kind for one, kind in kinds.items()}
    widths = {following.get(one, one): bits for one, bits in widths.items()}
    body = _joined(body, widths, unnamed - directions.keys(), frozenset(directions))
    used = Counter(each for line in body for each in NAME.findall(line))
    order = [*order, *sorted(directions, key=lambda one: (one != "clk", one != "rst", directions[one], one))]
    ports = tuple(
        Port(name=one, direction=directions[one], bits=widths[one])
        for one in dict.fromkeys(order)
        if one in directions
    )
    text = [f"module {name} ("]
    for port in ports:
        kind, _, start = kinds[port.name]
        comma = "" if port is ports[-1] else ","
        text.append(f"    {port.direction:<6} {kind.strip()} {port.name}{start}{comma}")
    text.append(");")
    # The variable that has every block run at time 0 has its start value from a statement of its own.
    text += [
        f"  {kind.strip()} {one}{rows}{start};"
        for one, (kind, rows, start) in kinds.items()
        if one not in directions and used[one]
    ]
    return Module(
        name=name,
        ports=ports,
        text="\n".join([*text, *body, "endmodule"]) + "\n",
    )


def _following(body: Sequence[str], unnamed: set[str], taken: Iterable[str]) -> dict[str, str]:
    """A name for each unnamed variable that is a register's next value: `state_next` for that of `state`."""
    uses = Counter(each for line in body for each in NAME.findall(line) if "<=" in line)
    found: dict[str, str] = {}
    for line in body:
        register = _REGISTER.match(line)
        if register and register[2] in unnamed and uses[register[2]] == 1:
            name = f"{register[1]}_next"
            if name not in taken and name not in found.values():
                found[register[2]] = name
    return found


def _bits(kind: str) -> int:
    """The bits of a declaration (`wire [7:0] `)."""
    found = re.search(r"\[(\d+):(\d+)\]", kind)
    return int(found[1]) - int(found[2]) + 1 if found else 1


@dataclass
class _Line:
    """A line of a module's body, and the expression in it, if that could be read."""

    before: str
    target: str = ""
    value: Expression | None = None
    after: str = ""

    def text(self, widths: Mapping[str, int]) -> str:
        if self.value is None:
            return self.before + self.after
        bits = None
        if self.target:
            left = parse(self.target)
            bits = None if left is None else width(left, widths)
        return f"{self.before}{write(self.value, widths, bits)}{self.after}"


def _read(line: str, widths: Mapping[str, int]) -> _Line:
    statement, condition = _STATEMENT.match(line), _CONDITION.match(line)
    if statement and (value := parse(statement[4])) is not None and _known(statement[2], value, widths):
        return _Line("".join(statement.groups()[:3]), statement[2], value, ";")
    if condition and (value := parse(condition[2])) is not None and _known("", value, widths):
        return _Line(condition[1], "", value, condition[3])
    return _Line(line)


def _known(target: str, value: Expression, widths: Mapping[str, int]) -> bool:
    """Whether the width of everything in a statement is known."""
    try:
        width(value, widths)
    except (KeyError, ValueError):
        return False
    left = parse(target) if target else None
    return not target or (left is not None and left.kind == "name" and left.text in widths)


def _joined(
    lines: Sequence[str], widths: Mapping[str, int], unnamed: set[str], ports: frozenset[str]
) -> list[str]:
    """The lines, with unnamed wires put where they are used once, and without wires that are not used."""
    body = [_read(line, widths) for line in lines]
    made = {
        line.target: line
        for line in body
        if line.value is not None and line.before.startswith("  assign ") and line.target in widths
    }
    opaque = Counter(each for line in body if line.value is None for each in NAME.findall(line.before))
    while True:
        uses = Counter(each for line in body if line.value is not None for each in names(line.value))
        users = {each: line for line in body if line.value is not None for each in names(line.value)}
        dropped: set[int] = set()
        for name, line in made.items():
            if opaque[name] or name in ports:
                continue
            if not uses[name]:
                dropped.add(id(line))
            elif name in unnamed and uses[name] == 1 and _put(users[name], name, line, widths):
                dropped.add(id(line))
                # What is in the line that is gone is used by another line now.
                users |= {each: users[name] for each in names(line.value)} if line.value else {}
        if not dropped:
            return [line.text(widths) for line in body]
        body = [line for line in body if id(line) not in dropped]
        made = {name: line for name, line in made.items() if id(line) not in dropped}


def _put(user: _Line, name: str, source: _Line, widths: Mapping[str, int]) -> bool:
    """Put the wire `name`, which `source` makes, into the line that uses it, if that changes no width."""
    assert user.value is not None and source.value is not None
    if width(source.value, widths) != widths[name]:
        return False
    before = user.value
    try:
        user.value = put(before, name, source.value)
        fits = len(user.text(widths)) <= MOST_LETTERS
    except (KeyError, ValueError):
        fits = False
    if not fits:
        user.value = before
    return fits
