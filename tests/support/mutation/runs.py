"""Runs of a file's tests: once to find its mutants, and once for each mutant."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .child import TimedOut, in_child
from .own_tests import own_tests
from .places import ROOT, text_at
from .plugin import Plugin
from .rewrite import Mutant

__all__ = ["Baseline", "BaselineFailed", "Outcome", "baseline", "digest", "outcome"]

_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not full", "--tb=short")
_BASELINE_SECONDS = 3600.0
_LEAST_SECONDS, _TIMES_SLOWER = 60.0, 5.0
"""A mutant may take so many times the time that its tests take without it, and so much in any case."""


class BaselineFailed(Exception):
    """A test fails without any mutant; the message says which."""


@dataclass(frozen=True)
class Baseline:
    """A file's `mutants`, each with the tests in which it is there, and the `seconds` that each test takes."""

    mutants: Mapping[Mutant, list[str]]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """`end`: "killed", "timed out" or "survived". `by`, `why`: the test that failed and the first line of its
    message. `tests`: how many could run."""

    end: str
    tests: int
    by: str = ""
    why: str = ""


def digest(names: Iterable[str]) -> str:
    """A name for the contents of files."""
    total = hashlib.sha256()
    for name in names:
        total.update(name.encode() + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return total.hexdigest()[:16]


def _pytest(plugin: Plugin, tests: Iterable[str], *options: str) -> int:
    plugin.install()
    return int(pytest.main([*_OPTIONS, *options, *tests], plugins=[plugin]))


def baseline(file: str, *, log: Path, kept: Path) -> Baseline:
    """The mutants of `file`, from a run of its tests; `kept` holds what was found before. Raises BaselineFailed."""
    tests = own_tests(file)
    path = kept / f"{digest([file, *tests])}.json"
    if not path.exists():
        path.write_text(
            json.dumps(in_child(lambda: _search(file, tests), log=log, timeout_s=_BASELINE_SECONDS))
        )
    found = json.loads(path.read_text())
    # The end of a search without proofs says nothing about their tests.
    failed = [name for name in found["failed"] if not name.startswith("tests/formal/")]
    if failed:
        path.unlink()
        raise BaselineFailed(f"{failed[0]} fails without any mutant: {found['failed'][failed[0]]} ({log})")
    mutants = {Mutant(file, tuple(span), change): names for span, change, names in found["mutants"]}
    return Baseline(mutants, found["seconds"])


def _search(file: str, tests: list[str]) -> Any:
    plugin = Plugin(file=file)
    if tests:
        _pytest(plugin, tests, "--maxfail=1000")
    mutants = [(one.span, one.change, sorted(names)) for one, names in sorted(plugin.found.items()) if names]
    return {"mutants": mutants, "seconds": plugin.seconds, "failed": plugin.failed}


def outcome(mutant: Mutant, base: Baseline, *, log: Path) -> Outcome:
    """Run the tests of one mutant, the quickest first, until one fails."""
    order = sorted(base.mutants[mutant], key=lambda name: base.seconds.get(name, 0.0))

    def work() -> Any:
        plugin = Plugin(file=mutant.file, active=mutant, order=order)
        status = _pytest(plugin, dict.fromkeys(name.partition("::")[0] for name in order))
        return {"status": status, "applied": plugin.applied, "failed": plugin.failed}

    limit = max(_LEAST_SECONDS, _TIMES_SLOWER * sum(base.seconds.get(name, 0.0) for name in order))
    try:
        told = in_child(work, log=log, timeout_s=limit)
    except TimedOut:
        return Outcome("timed out", len(order))
    if told["status"] not in (0, 1) or not told["applied"]:
        where = f"{mutant.file}:{mutant.span[0]}: {text_at(mutant.file, mutant.span)}: {mutant.change}"
        raise BaselineFailed(
            f"{where}: pytest ended with {told['status']}, made {told['applied']} times ({log})"
        )
    # A proof that ran out of time ends the run, and kills nothing.
    if told["failed"]:
        return Outcome("killed", len(order), *next(iter(told["failed"].items()), ("", "")))
    return Outcome("survived", len(order))
