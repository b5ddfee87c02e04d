"""Mutants chosen at random for each file, run once, and written down."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

# What every child needs is imported before the first is made.
import hypothesis  # noqa: F401
import lanikai.hdl.emit
import lanikai.sim.build.model  # noqa: F401

from .child import ChildFailed
from .outcomes import outcome
from .own_tests import own_tests
from .places import ROOT, text_at
from .plugin import Plugin
from .rewrite import Mutant
from .runs import Baseline, BaselineFailed, baseline, digest, of_some_tests, with_tests

__all__ = ["ENDS", "WHOLE", "Campaign"]

ENDS = ("killed", "timed out", "survived", "undecided")
"""The ends of mutants."""
WHOLE = 20
"""Mutants of a file in a whole run. A run of fewer takes the first of these."""


class Campaign:
    """A choice of `count` mutants a file by `seed`.

    - `budget_s`: processor time after which no further test of a mutant begins; None for no end.
    - `cache`: a folder for what is known already: an interrupted run goes on where it stopped.
    - `result`: the JSON file of all files' results.
    """

    def __init__(
        self, *, seed: int, count: int, cache: Path, result: Path, budget_s: float | None = None
    ) -> None:
        self.seed, self.count, self.cache, self.result = seed, count, cache, result
        self.budget_s = budget_s
        for name in ("searches", "logs"):
            (cache / name).mkdir(parents=True, exist_ok=True)
        self._known = cache / "outcomes.jsonl"

    def file(self, file: str) -> int:
        """Run the mutants of `file`. Returns how many were not killed; 1 if they could not be
        run."""
        log = self.cache / "logs" / f"{file.replace('/', '.')}.log"
        started = time.monotonic()
        try:
            base = baseline(file, log=log, kept=self.cache / "searches")
            if not base.mutants:
                raise BaselineFailed(
                    f"no mutant is possible in {', '.join(own_tests(file))}, which elaborate none of it: name other "
                    "tests in tests/support/mutation/own_tests.toml"
                )
            chosen = self.choice(file, base)
            print(f"{file}: {len(base.mutants)} mutants, {len(chosen)} of them run", flush=True)
            ends = self._known_ends(chosen)
            left = [one for one in chosen if one not in ends]
            if left:
                tests = dict.fromkeys(name.partition("::")[0] for one in left for name in base.mutants[one])
                with_tests(tests, lambda plugin: self._run(left, base, plugin, log), log=log)
                ends = self._known_ends(chosen)
        except (BaselineFailed, ChildFailed) as error:
            print(f"{file}: {error}", flush=True)
            return 1
        told = [(one, ends[one]) for one in chosen]
        alive = [(one, end) for one, end in told if end["end"] in ("survived", "undecided")]
        for one, end in alive:
            print(f"  {end['end']}, {end['tests']} tests: {_named(one)}", flush=True)
        self._write(file, base, told, time.monotonic() - started)
        return len(alive)

    def again(self, files: Sequence[str], tests: Sequence[str]) -> int:
        """Run the survivors of earlier runs of `files` against `tests`, those that are new, and write down which of
        them these kill. Returns how many are still alive."""
        log = self.cache / "logs" / "again.log"
        report = json.loads(self.result.read_text()) if self.result.exists() else {}
        rows = {file: row for file, row in report.get("files", {}).items() if file in files}
        for file in [one for one, row in rows.items() if row["digest"] != digest([one])]:
            print(f"{file}: changed since its run; run it whole")
            del rows[file]
        base = of_some_tests(tests, rows, log=log)
        alive = {
            (file, one["line"], one["text"], one["change"])
            for file, row in rows.items()
            for one in row["survivors"]
        }
        chosen = {one: name for one in sorted(base.mutants) if (name := _identity(one)) in alive}
        if not chosen:
            raise BaselineFailed("no survivor of these files is in these tests")
        ends = with_tests(tests, lambda plugin: self._ends([*chosen], base, plugin, log), log=log)
        for (mutant, (file, *name)), end in zip(chosen.items(), ends, strict=True):
            print(f"{_named(mutant)}: {end['end']} {end['by']}", flush=True)
            row = rows[file]
            if end["end"] in ("killed", "timed out"):
                kept = [one for one in row["survivors"] if [one["line"], one["text"], one["change"]] != name]
                row[end["end"]] += 1
                row["survivors"], row["survived"] = kept, len(kept)
        self.result.write_text(json.dumps(report, indent=1) + "\n")
        return sum(row["survived"] for row in rows.values())

    def _ends(self, mutants: list[Mutant], base: Baseline, plugin: Plugin, log: Path) -> list[dict[str, Any]]:
        kills = Counter[str]()
        return [
            asdict(outcome(one, base, plugin, kills=kills, log=log, budget_s=self.budget_s))
            for one in mutants
        ]

    def choice(self, file: str, base: Baseline) -> list[Mutant]:
        """The mutants that are run: all, or `count` at random."""
        mutants = sorted(base.mutants)
        drawn = random.Random(f"{self.seed}:{file}").sample(
            mutants, min(len(mutants), max(self.count, WHOLE))
        )
        return sorted(drawn[: self.count])

    def _key(self, mutant: Mutant) -> list[Any]:
        return [mutant.file, digest([mutant.file]), list(mutant.span), mutant.change]

    def _known_ends(self, mutants: list[Mutant]) -> dict[Mutant, dict[str, Any]]:
        """The ends of mutants from runs up to now, where nothing changed that they depend on.

        One that was killed stays so while its file is the same. One that survived is run again when a test changed, one
        that is undecided when it may take longer.
        """
        names = {json.dumps(self._key(one)): one for one in mutants}
        tests = digest(own_tests(mutants[0].file)) if mutants else ""
        ends = {}
        for line in self._known.read_text().splitlines() if self._known.exists() else ():
            known = json.loads(line)
            mutant = names.get(json.dumps(known["key"]))
            alive = known["end"] in ("survived", "undecided")
            longer = known["end"] == "undecided" and known["budget_s"] != self.budget_s
            if mutant and not longer and (not alive or known["tests_digest"] == tests):
                ends[mutant] = known
        return ends

    def _run(self, mutants: list[Mutant], base: Baseline, plugin: Plugin, log: Path) -> None:
        """Run mutants, and write the end of each down when it is known."""
        kills = Counter[str]()
        for mutant in mutants:
            started = time.monotonic()
            ended = outcome(mutant, base, plugin, kills=kills, log=log, budget_s=self.budget_s)
            told: dict[str, Any] = {"key": self._key(mutant), "tests_digest": digest(own_tests(mutant.file))}
            told |= asdict(ended) | {"budget_s": self.budget_s}
            told["seconds"] = round(time.monotonic() - started, 1)
            with self._known.open("a") as out:
                out.write(json.dumps(told) + "\n")

    def _write(self, file: str, base: Baseline, ends: list[tuple[Mutant, Any]], seconds: float) -> None:
        report = json.loads(self.result.read_text()) if self.result.exists() else {}
        counts = {end: sum(told["end"] == end for _, told in ends) for end in ENDS}
        survivors = [
            {
                "line": mutant.span[0],
                "text": text_at(file, mutant.span),
                "change": mutant.change,
                "tests": told["tests"],
            }
            for mutant, told in ends
            if told["end"] in ("survived", "undecided")
        ]
        files = report.get("files", {})
        files[file] = {
            "digest": digest([file]),
            "tree": _tree(),
            "seed": self.seed,
            "possible": len(base.mutants),
            "run": len(ends),
            **counts,
            "survivors": survivors,
        }
        self.result.write_text(json.dumps({"files": dict(sorted(files.items()))}, indent=1) + "\n")
        print(f"  {counts} in {seconds:.0f} s", flush=True)


def _tree() -> str:
    """The commit that the tree was made from."""
    told = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return told.stdout.strip()


def _identity(mutant: Mutant) -> tuple[str, int, str, str]:
    """The file of a survivor, and that by which a row of results names it."""
    return mutant.file, mutant.span[0], text_at(mutant.file, mutant.span), mutant.change


def _named(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.span[0]}: {text_at(mutant.file, mutant.span)}: {mutant.change}"
