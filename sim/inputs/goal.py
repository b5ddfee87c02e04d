"""GOAL schedules in their text form, as LogGOPSim has them: what each rank sends, receives and computes, in what order.

    num_ranks 2
    rank 0 {
      a: calc 1000
      b: send 4096b to 1 tag 7
      b requires a
    }
    rank 1 {
      recv 4096b from 0 tag 7
    }

An operation may have a label. `calc` takes nanoseconds. `x requires y`: x starts when y has ended. `x irequires y`: it
starts when y has started. `cpu` and `nic` may follow an operation; both must be 0, as a rank is one thread here.
Comments begin with `#` or `//`, or stand between `/*` and `*/`.

Source: Hoefler, Siebert, Lumsdaine, Group Operation Assembly Language, 2009.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..user_files import at_line, quoted, read_text, whole
from .errors import InputError

__all__ = ["GOAL_EXAMPLE", "Operation", "Schedule", "read_goal"]

GOAL_EXAMPLE = Path(__file__).parent / "examples" / "ring.goal"
"""A schedule that comes with the package: four ranks that compute and pass data around a ring."""
MOST_RANKS = 16
MOST_BYTES = 1 << 24
MOST_NANOSECONDS = 10**12
MOST_TAG = (1 << 15) - 1
_TOKEN = re.compile(r"\s+|//[^\n]*|#[^\n]*|/\*.*?\*/|([A-Za-z0-9_.\-]+|[:{}])|(.)", re.DOTALL)


@dataclass(kw_only=True)
class Operation:
    """An operation of a rank.

    - `kind`: `send`, `recv` or `calc`; `line`: where it stands.
    - `amount`: bytes, or nanoseconds of a `calc`.
    - `peer`, `tag`: the other rank of a message, and its tag.
    - `requires`, `irequires`: positions of operations that must have ended, or started, before it starts.
    """

    kind: str
    line: int
    amount: int
    peer: int = -1
    tag: int = 0
    requires: list[int] = field(default_factory=list)
    irequires: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The operations of each rank, in the order of the file."""

    ranks: tuple[tuple[Operation, ...], ...]

    @property
    def messages(self) -> int:
        """Messages that are sent."""
        return sum(one.kind == "send" for rank in self.ranks for one in rank)


def read_goal(path: Path) -> Schedule:
    """The schedule in a file. Raises InputError: file, line, what is there, what would be right.

    Beside faults of form these are refused:

    - labels that there are not, or twice;
    - operations that wait for each other;
    - messages that are sent and not received, or in another length.
    """
    return _Parser(path).schedule()


class _Parser:
    """A file, token by token."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens = list(_tokens(path))
        self._at = 0

    def schedule(self) -> Schedule:
        """The whole file."""
        self._word("num_ranks")
        count = self._number("ranks", 1, MOST_RANKS)
        blocks: dict[int, tuple[int, tuple[Operation, ...]]] = {}
        while self._at < len(self._tokens):
            _, line = self._word("rank")
            rank = self._number("rank", 0, count - 1)
            if rank in blocks:
                raise self._bad(line, f"rank {rank} for the second time", f"line {blocks[rank][0]} has it")
            blocks[rank] = line, self._block(count, rank)
        for rank in range(count):
            if rank not in blocks:
                raise InputError(
                    f"{self._path}: no block of rank {rank}: `num_ranks {count}` needs ranks 0 to {count - 1}"
                )
        ranks = tuple(blocks[rank][1] for rank in range(count))
        self._check_messages(ranks)
        return Schedule(ranks=ranks)

    def _block(self, count: int, rank: int) -> tuple[Operation, ...]:
        self._word("{")
        operations: list[Operation] = []
        labels: dict[str, int] = {}
        orders: list[tuple[str, str, str, int]] = []
        while True:
            text, line = self._next("an operation, or }")
            if text == "}":
                break
            if text in ("send", "recv", "calc"):
                operations.append(self._operation(text, line, count, rank))
                continue
            after, _ = self._next("`:` and an operation, or `requires` and a label")
            if after == ":":
                if text in labels:
                    first = operations[labels[text]].line
                    raise self._bad(line, f"label {quoted(text)} for the second time", f"line {first} has it")
                labels[text] = len(operations)
                kind, line = self._next("send, recv or calc")
                operations.append(self._operation(kind, line, count, rank))
            elif after in ("requires", "irequires"):
                orders.append((text, after, self._next("a label")[0], line))
            else:
                raise self._bad(
                    line, quoted(f"{text} {after}"), "send, recv, calc, `LABEL:` or `LABEL requires LABEL`"
                )
        for later, how, sooner, line in orders:
            for label in (later, sooner):
                if label not in labels:
                    raise self._bad(line, f"label {quoted(label)}", f"a label of an operation of rank {rank}")
            getattr(operations[labels[later]], how).append(labels[sooner])
        self._check_order(operations)
        return tuple(operations)

    def _operation(self, kind: str, line: int, count: int, rank: int) -> Operation:
        if kind == "calc":
            found = Operation(kind=kind, line=line, amount=self._number("nanoseconds", 0, MOST_NANOSECONDS))
        elif kind in ("send", "recv"):
            text, at = self._next("a length in bytes, as 4096b")
            length = whole(text[:-1], 1, MOST_BYTES) if text.endswith("b") else None
            if length is None:
                raise self._bad(at, quoted(text), f"a length in bytes, as 4096b, from 1b to {MOST_BYTES}b")
            self._word("to" if kind == "send" else "from")
            peer = self._number("rank", 0, count - 1)
            if peer == rank:
                raise self._bad(line, f"a message from rank {rank} to itself", "another rank")
            found = Operation(kind=kind, line=line, amount=length, peer=peer)
            if self._peek() == "tag":
                self._at += 1
                found.tag = self._number("tag", 0, MOST_TAG)
        else:
            raise self._bad(line, quoted(kind), "send, recv or calc")
        while (place := self._peek()) in ("cpu", "nic"):
            self._at += 1
            self._number(f"a rank has one {place} here", 0, 0)
        return found

    def _check_order(self, operations: list[Operation]) -> None:
        """Raises InputError if operations wait for each other."""
        waits = [{*one.requires, *one.irequires} for one in operations]
        left = set(range(len(operations)))
        while free := {place for place in left if not waits[place] & left}:
            left -= free
        if left:
            lines = ", ".join(str(operations[place].line) for place in sorted(left)[:5])
            first = operations[min(left)].line
            raise self._bad(
                first, f"operations that wait for each other (lines {lines})", "an order without a circle"
            )

    def _check_messages(self, ranks: tuple[tuple[Operation, ...], ...]) -> None:
        """Raises InputError unless each message is received in its length."""
        sent: Counter[tuple[int, int, int, int]] = Counter()
        lines: dict[tuple[int, int, int, int], int] = {}
        for kind, sign in (("send", 1), ("recv", -1)):
            for rank, operations in enumerate(ranks):
                for one in operations:
                    if one.kind == kind:
                        ends = (rank, one.peer) if kind == "send" else (one.peer, rank)
                        key = (*ends, one.tag, one.amount)
                        sent[key] += sign
                        lines[key] = one.line
        for (source, target, tag, length), more in sent.items():
            if more:
                what = "sent" if more > 0 else "received"
                other = "received" if more > 0 else "sent"
                raise self._bad(
                    lines[source, target, tag, length],
                    f"{abs(more)} more of {length}b {what} from rank {source} to rank {target} with tag {tag} than "
                    f"{other}",
                    "as many of each length",
                )

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _next(self, right: str) -> tuple[str, int]:
        if self._at == len(self._tokens):
            line = self._tokens[-1][1] if self._tokens else 1
            raise self._bad(line, "the end of the file", right)
        self._at += 1
        return self._tokens[self._at - 1]

    def _word(self, text: str) -> tuple[str, int]:
        found, line = self._next(f"`{text}`")
        if found != text:
            raise self._bad(line, quoted(found), f"`{text}`")
        return found, line

    def _number(self, name: str, low: int, high: int) -> int:
        text, line = self._next(f"{name}: a whole number")
        value = whole(text, low, high)
        if value is None:
            right = f"{name}: a whole number, {low} to {high}" if high > low else f"{low}: {name}"
            raise self._bad(line, quoted(text), right)
        return value

    def _bad(self, line: int, found: str, right: str) -> Exception:
        return at_line(self._path, line, found, right, InputError)


def _tokens(path: Path) -> Iterator[tuple[str, int]]:
    """Words and signs of a file, each with its line. Raises InputError."""
    text = read_text(path, "schedule", InputError)
    line = 1
    for found in _TOKEN.finditer(text):
        if found[2]:
            raise at_line(
                path, line, quoted(found[2]), "words of letters and digits, `:`, `{` and `}`", InputError
            )
        if found[1]:
            yield found[1], line
        line += found[0].count("\n")
