"""Runs of tests: once to find the mutants that they elaborate, and once for each mutant."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .child import in_child
from .own_tests import own_tests
from .places import ROOT
from .plugin import Plugin
from .rewrite import Mutant

__all__ = ["Baseline", "BaselineFailed", "baseline", "digest", "of_some_tests", "with_tests"]

_OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "-m", "not full", "--tb=short", "--capture=no"),
    "--maxfail=1000",
)
_SECONDS = 6 * 3600.0


class BaselineFailed(Exception):
    """A test fails without any mutant; the message says which."""


@dataclass(frozen=True)
class Baseline:
    """A file's `mutants`, each with the tests in which it is there, and the processor `seconds` of each test."""

    mutants: Mapping[Mutant, list[str]]
    seconds: Mapping[str, float]


def digest(names: Iterable[str]) -> str:
    """A name for the contents of files."""
    total = hashlib.sha256()
    for name in names:
        total.update(name.encode() + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return total.hexdigest()[:16]


def baseline(file: str, *, log: Path, kept: Path) -> Baseline:
    """The mutants of `file` in its tests; `kept` holds what was found before. Raises BaselineFailed.

    The tests of one test file are searched once for all files of the RTL that they elaborate.
    """
    mutants: dict[Mutant, list[str]] = defaultdict(list)
    seconds: dict[str, float] = {}
    for tests in own_tests(file):
        found = _searched(tests, file, log, kept)
        names = [*found["seconds"]]
        seconds |= found["seconds"]
        for span, change, numbers in found["mutants"].get(file, []):
            mutants[Mutant(file, tuple(span), change)] += [names[number] for number in numbers]
    return Baseline(dict(mutants), seconds)


def of_some_tests(tests: Sequence[str], files: Iterable[str], *, log: Path) -> Baseline:
    """The mutants of `files` in some tests, which are named as pytest does. Raises BaselineFailed."""
    found = in_child(lambda: _search(tests), log=log, timeout_s=_SECONDS)
    for name, why in found["failed"].items():
        raise BaselineFailed(f"{name} fails without any mutant: {why} ({log})")
    names = [*found["seconds"]]
    mutants = {
        Mutant(file, tuple(span), change): [names[number] for number in numbers]
        for file in files
        for span, change, numbers in found["mutants"].get(file, [])
    }
    return Baseline(mutants, found["seconds"])


def _searched(tests: str, file: str, log: Path, kept: Path) -> dict[str, Any]:
    path = kept / f"{digest([tests])}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if not found or found["digests"].get(file, digest([file])) != digest([file]):
        found = in_child(lambda: _search([tests]), log=log, timeout_s=_SECONDS)
        # The end of a search without proofs says nothing about their tests.
        failed = {} if tests.startswith("tests/formal/") else found["failed"]
        for name, why in failed.items():
            raise BaselineFailed(f"{name} fails without any mutant: {why} ({log})")
        path.write_text(json.dumps(found))
    return found


def _search(tests: Sequence[str]) -> Any:
    plugin = Plugin()
    if run(plugin, tests) not in (0, 1):
        raise BaselineFailed(f"pytest finds no test in {', '.join(tests)}")
    numbers = {name: number for number, name in enumerate(plugin.seconds)}
    mutants: dict[str, list[Any]] = defaultdict(list)
    for one, names in sorted(plugin.found.items()):
        mutants[one.file].append((one.span, one.change, sorted(numbers[name] for name in names)))
    return {
        "seconds": plugin.seconds,
        "failed": plugin.failed,
        "mutants": mutants,
        "digests": {name: digest([name]) for name in mutants},
    }


def run(plugin: Plugin, tests: Iterable[str]) -> int:
    """Run pytest in this process, of which nothing is used afterwards. Returns its status."""
    plugin.install()
    folder = tempfile.mkdtemp(prefix="mutation-")
    try:
        return int(pytest.main([*_OPTIONS, f"--basetemp={folder}/tmp", *tests], plugins=[plugin]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_tests(tests: Iterable[str], work: Callable[[Plugin], Any], *, log: Path) -> Any:
    """The result of `work` (JSON values) in a child that has the test files `tests` collected, and runs none of them.

    What a run needs before its first test is done once, and each mutant is a child of this child.
    """

    def collected() -> Any:
        plugin = Plugin(instead=work)
        status = run(plugin, tests)
        if status:
            raise BaselineFailed(f"pytest ended with {status} ({log})")
        return plugin.result

    return in_child(collected, log=log, timeout_s=_SECONDS)
