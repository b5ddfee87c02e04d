"""Writes of VL tables: memory that takes them holds the tables, whatever it held before."""

from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.vl_table import entry_writes

ENTRIES = 8
ROWS = st.lists(st.tuples(st.integers(0, 14), st.integers(1, 255)), max_size=ENTRIES)
TABLES = st.tuples(ROWS, ROWS)


def full(tables):
    return [[*rows, *[(0, 0)] * (ENTRIES - len(rows))] for rows in tables]


def flat(tables):
    return [row for rows in full(tables) for row in rows]


def write(memory, writes):
    count = 0
    for one in writes:
        memory[1 - one["high"]][one["entry"]] = (one["vl"], one["weight"])
        count += 1
    return count


@given(TABLES, TABLES)
def test_memory_holds_the_tables_that_were_written_last(first, second):
    memory = [[("?", "?")] * ENTRIES for _ in range(2)]
    assert write(memory, entry_writes(first, ENTRIES)) == 2 * ENTRIES
    assert memory == full(first)
    changed = write(memory, entry_writes(second, ENTRIES, first))
    assert memory == full(second)
    # No entry is written that is the same already.
    assert changed == sum(old != new for old, new in zip(flat(first), flat(second), strict=True))


def test_entries_without_a_row_are_left_alone_if_a_table_is_sparse():
    assert list(entry_writes(([], [(3, 7)]), 0)) == [{"high": 0, "entry": 0, "vl": 3, "weight": 7}]
