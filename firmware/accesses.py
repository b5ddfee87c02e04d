"""Lists of accesses to a card's registers and SRAM, carried out in one go.

A step of firmware that knows its accesses beforehand writes them down and hands them over. Whoever has the port carries
them out, each at the cycles that it takes one by one. The step goes on at their end, with the words that were read:

    steps = AccessList()
    status = steps.read("HOST_DMA_STATUS")
    steps.write("ISR", host_dma=1)
    await processor.run("sdma_done", steps)
    if status["error"]:
        ...

A write takes 1 cycle and a read 2, more if the SRAM is busy. All else but a pause takes none. So a list takes as long
as its accesses do, and firmware may be written either way. `carry_out.py` says what each record does.

A list may be kept, and carried out again and again. Its readings then have the words of the last time.
"""

from __future__ import annotations

from array import array
from enum import IntEnum

from . import registers

__all__ = ["LONGEST", "RECORD_WORDS", "AccessList", "Op", "Reading", "Record", "Why"]

LONGEST = 128
"""Most records of a list: accesses, pauses, conditions. A read of several words has one for each."""
RECORD_WORDS = 8
"""Words of a record: its operation, its operands, zeros (kWords of `sim/native/lists.h`)."""
WORD = 0xFFFFFFFF


class Op(IntEnum):
    """The first word of a record; below each, its operands (as `Op` of `sim/native/lists.h`)."""

    READ = 0
    """address"""
    WRITE = 1
    """address, word"""
    COPY = 2
    """address, reading, mask, bits to the left, flipped bits, added number, mask"""
    PAUSE = 3
    """cycles"""
    WAIT = 4
    """address, mask, value, cycles between two reads, most reads"""
    SKIP = 5
    """reading, mask, value, 1 if it must not be that, records"""
    STOP = 6
    """reading, mask, value, 1 if it must not be that"""
    MARK = 7
    """cycles"""


class Why(IntEnum):
    """The reason for which a list has come to its end."""

    END = 0
    STOPPED = 1
    """A condition said so."""
    MARKED = 2
    """At a mark, as another step waits for the processor."""
    LATE = 3
    """The last wait has come to its bound."""


Record = tuple[int, ...]
_READ, _WRITE = int(Op.READ), int(Op.WRITE)


class Reading:
    """A word that a list reads. `name` is its register, "" for a word of SRAM; `place` is its number in the list.

    Once the list has been carried out, `word` is what was read, None if the list ended before. `reading["field"]` is a
    field of the register; it raises KeyError for one that there is not, and ValueError as `get`.
    """

    __slots__ = ("_list", "name", "place")

    def __init__(self, accesses: AccessList, name: str, place: int) -> None:
        self._list, self.name, self.place = accesses, name, place

    @property
    def word(self) -> int | None:
        """The word, None if it has not been read."""
        words = self._list.words
        return words[self.place] if self.place < len(words) else None

    def get(self) -> int:
        """The word. Raises ValueError if it has not been read."""
        try:
            return self._list.words[self.place]
        except IndexError:
            name = self.name or "a word of SRAM"
            raise ValueError(f"{name} has not been read: its list ended before") from None

    def fields(self) -> dict[str, int]:
        """All fields of the register. Raises ValueError as `get`."""
        return registers.unpack(self.name, self.get())

    def __getitem__(self, field: str) -> int:
        low, most = registers.places(self.name)[field]
        return self.get() >> low & most


class AccessList:
    """A list of accesses, in their order, of at most `LONGEST` records.

    - `program`: what has been written down, `RECORD_WORDS` a record.
    - `readings`: how many words it reads. `words`: those that have been read.
    - `reached`: how many records have been passed.
    - `why`: the reason for which it ended.
    - `has_marks`: whether it may end at a mark.
    - `interrupted`: whether it is to end at its next mark; whoever carries it out looks there.
    - `paid`: place, name and cycles of each step that it pays for (`Processor.pay`); a mark has no name.

    Each call raises ValueError for an operand that does not fit, and for a record too many. Names and fields are those
    of the registers (`lanikai.firmware.registers`), whose errors they raise.
    """

    __slots__ = (
        "_checked",
        "_image",
        "_records",
        "_skips",
        "has_marks",
        "interrupted",
        "paid",
        "program",
        "reached",
        "readings",
        "why",
        "words",
    )

    def __init__(self) -> None:
        self.program: list[int] = []
        self.words: list[int] = []
        self.paid: list[tuple[int, str, int]] = []
        self.reached = 0
        self.why = Why.END
        self.has_marks = self.interrupted = self._skips = False
        self.readings = 0
        self._checked = 0
        self._image: array[int] | None = None
        self._records: list[Record] = []

    def __len__(self) -> int:
        """Its records."""
        return len(self.program) // RECORD_WORDS

    @property
    def records(self) -> list[Record]:
        """Its records, each of `RECORD_WORDS` words."""
        program, known = self.program, len(self._records) * RECORD_WORDS
        for at in range(known, len(program), RECORD_WORDS):
            self._records.append(tuple(program[at : at + RECORD_WORDS]))
        return self._records

    def image(self) -> array[int]:
        """Its program as 32-bit words in memory. It is kept, and made anew when something has been added."""
        image = self._image
        if image is None or len(image) != len(self.program):
            image = self._image = array("I", self.program)
        return image

    def read(self, name: str) -> Reading:
        """Read a register, 2 cycles."""
        program = self.program
        if len(program) >= _LONGEST_WORDS:
            raise _too_long()
        program += (_READ, registers.address(name), 0, 0, 0, 0, 0, 0)
        return self._reading(name)

    def write(self, name: str, **fields: int) -> None:
        """Write a register's fields, the others zero, 1 cycle."""
        places, word = registers.places(name), 0
        for field, value in fields.items():
            if field not in places or not 0 <= value <= places[field][1]:
                registers.pack(name, **fields)  # which says what is wrong
            word |= value << places[field][0]
        program = self.program
        if len(program) >= _LONGEST_WORDS:
            raise _too_long()
        program += (_WRITE, registers.address(name), word, 0, 0, 0, 0, 0)

    def load(self, address: int, words: int = 1) -> list[Reading]:
        """Read words of SRAM from `address` on, 2 cycles each and their wait."""
        if not 0 <= address <= WORD - 4 * words:
            raise _unfit(Op.READ, address)
        if len(self.program) > _LONGEST_WORDS - RECORD_WORDS * words:
            raise _too_long()
        first = self.readings
        self.readings += words
        for at in range(address, address + 4 * words, 4):
            self.program += (_READ, at, 0, 0, 0, 0, 0, 0)
        return [Reading(self, "", place) for place in range(first, first + words)]

    def store(self, address: int, *words: int) -> None:
        """Write words to SRAM from `address` on, 1 cycle each and their wait."""
        if not 0 <= address <= WORD - 4 * len(words):
            raise _unfit(Op.WRITE, address)
        if len(self.program) > _LONGEST_WORDS - RECORD_WORDS * len(words):
            raise _too_long()
        for word in words:
            if not 0 <= word <= WORD:
                raise _unfit(Op.WRITE, word)
            self.program += (_WRITE, address, word, 0, 0, 0, 0, 0)
            address += 4

    def copy(
        self,
        reading: Reading,
        name: str,
        *,
        mask: int = WORD,
        left: int = 0,
        flip: int = 0,
        add: int = 0,
        keep: int = WORD,
    ) -> None:
        """Write a word made of one that was read before to a register, 1 cycle.

        It is `(((word & mask) << left ^ flip) + add) & keep`, of 32 bits; `left` below 0 shifts to the right.
        """
        if not -31 <= left <= 31:
            raise ValueError(f"left = {left}: -31 to 31")
        self._add(Op.COPY, registers.address(name), reading.place, mask, left & WORD, flip, add & WORD, keep)

    def pause(self, cycles: int) -> None:
        """Let the processor work on its own for so many cycles, 0 or more."""
        if cycles:
            self._add(Op.PAUSE, cycles)

    def pay(self, name: str, cycles: int) -> None:
        """Pause for a further step of the cost table, which is charged if the list comes to it."""
        self.paid.append((len(self), name, cycles))
        self.pause(cycles)

    def wait(self, name: str, *, mask: int, value: int, every_cycles: int, most_reads: int) -> Reading:
        """Read a register again and again until `word & mask == value`, with `every_cycles` between two reads.

        After `most_reads` (1 to 65535) the list ends there, with `Why.LATE`. Its reading is the last one.
        """
        if not 1 <= most_reads < 1 << 16:
            raise ValueError(f"most_reads = {most_reads}: 1 to 65535")
        self._add(Op.WAIT, registers.address(name), mask, value, every_cycles, most_reads)
        return self._reading(name)

    def skip_if(
        self, reading: Reading, *, mask: int, value: int, records: int, differs: bool = False
    ) -> None:
        """Leave out the next `records` if `word & mask == value`, or if it `differs`. They read nothing."""
        if not 1 <= records <= LONGEST:
            raise ValueError(f"records = {records}: 1 to {LONGEST}")
        self._skips = True
        self._add(Op.SKIP, reading.place, mask, value, int(differs), records)

    def stop_if(self, reading: Reading, *, mask: int, value: int, differs: bool = False) -> None:
        """End the list here if `word & mask == value`, or if it `differs`."""
        self._add(Op.STOP, reading.place, mask, value, int(differs))

    def stop(self) -> None:
        """End the list here, if it comes here. Something must have been read before."""
        if not self.readings:
            raise ValueError("stop: nothing has been read, so the list could only be shorter")
        self._add(Op.STOP, 0, 0, 0, 0)

    def mark(self, cycles: int) -> None:
        """A step ends here, and another one begins, with `cycles` of its own.

        If another step has asked for the processor, the list ends here with `Why.MARKED`.
        """
        self.has_marks = True
        self.paid.append((len(self), "", cycles))
        self._add(Op.MARK, cycles)

    def check(self) -> None:
        """Look at the whole list. Raises ValueError for a record left out that reads, or one behind the end.

        Then the words that are read are the same in number and order whatever is left out.
        """
        if not self._skips or self._checked == len(self.program):
            return
        for place, record in enumerate(self.records):
            if record[0] == Op.SKIP:
                left_out = self.records[place + 1 : place + 1 + record[5]]
                if len(left_out) < record[5]:
                    raise ValueError(
                        f"record {place} leaves out {record[5]} records, and {len(left_out)} follow"
                    )
                if any(one[0] in (Op.READ, Op.WAIT) for one in left_out):
                    raise ValueError(f"record {place} leaves out a record that reads")
        self._checked = len(self.program)

    def rewind(self) -> None:
        """Go back to the list's beginning, with nothing read."""
        self.words = []
        self.reached, self.why, self.interrupted = 0, Why.END, False

    def charges(self, step: str) -> list[tuple[str, int]]:
        """Names and cycles of the further steps that it has come to: those that it pays for, and its marks, which
        are of `step`."""
        whole = self.why is Why.END
        return [(name or step, cycles) for place, name, cycles in self.paid if whole or place < self.reached]

    def ended(self, why: Why, reached: int) -> None:
        """Note the end, as whoever carries it out says."""
        self.why, self.reached = why, reached

    def _add(self, op: Op, *operands: int) -> None:
        if len(self.program) >= _LONGEST_WORDS:
            raise _too_long()
        for operand in operands:
            if not 0 <= operand <= WORD:
                raise _unfit(op, operand)
        self.program += (op, *operands, *_ZEROS[len(operands)])

    def _reading(self, name: str) -> Reading:
        place = self.readings
        self.readings = place + 1
        return Reading(self, name, place)


_LONGEST_WORDS = LONGEST * RECORD_WORDS
_ZEROS = [(0,) * (RECORD_WORDS - 1 - operands) for operands in range(RECORD_WORDS)]


def _too_long() -> ValueError:
    return ValueError(f"a list of accesses has at most {LONGEST} records")


def _unfit(op: Op, operand: int) -> ValueError:
    return ValueError(f"{op.name}: {operand:#x} does not fit 32 bits")
