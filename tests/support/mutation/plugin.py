"""The pytest plugin in whose runs one mutant is made, or all mutants of a file are found."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import hypothesis
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module

from . import places
from .rewrite import Mutant, Rewriter

__all__ = ["Plugin"]

PROOFS = "tests/formal/"
OUT_OF_TIME = ("took longer than", "DONE (TIMEOUT")
"""Words of a proof that ended without an answer: that says nothing of a mutant."""
PROOF_SECONDS = 20.0
"""The time that a test of proofs is taken to need, for their order: in a search for mutants they are not run."""


class Plugin:
    """A run of pytest.

    - `active`: the mutant that is made. Without one, all of `file` are found.
    - `order`: the tests to run, in this order; all others are left out. Without it, all run.
    - `found`: the mutants, and the tests in which each can be made.
    - `seconds`: the time of each test that ran.
    - `failed`: the tests that failed, and the first line of why.
    """

    def __init__(
        self, *, file: str, active: Mutant | None = None, order: Sequence[str] | None = None
    ) -> None:
        self.file, self.active, self.order = file, active, order
        self.found: dict[Mutant, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: dict[str, str] = {}
        self._rewriter = Rewriter(self._find, active)
        self._test = ""
        self._fixtures: list[str] = []
        self._users: dict[str, set[str]] = defaultdict(set)

    @property
    def applied(self) -> int:
        """How many times the mutant was made."""
        return self._rewriter.applied

    def install(self) -> None:
        """Change Amaranth, and what else the mutant has to reach, in this process."""
        places.install()
        elaborate, plugin = Module.elaborate, self

        def changed(module: Module, platform: object) -> Any:
            return plugin._rewriter.fragment(elaborate(module, platform))

        Module.elaborate = changed
        if self.active is None:
            from support.formal import harness

            # What a proof elaborates is enough.
            harness.prove = lambda spec, *_, **__: rtlil.convert(spec.m, name="spec", ports=spec.ports)
            return
        # A simulator that is found by its configuration alone would be one without the mutant.
        from lanikai.sim.build import model

        known = model._writers_hash()
        model._writers_hash = lambda: f"{known} {self.active}"

    def _find(self, mutant: Mutant) -> None:
        if mutant.file != self.file:
            return
        if self._fixtures:
            for test in self._users[self._fixtures[-1]]:
                self.found[mutant].add(test)
        elif self._test:
            self.found[mutant].add(self._test)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        # The same cases in every run, and no time for the smallest one that fails.
        hypothesis.settings.register_profile(
            "mutation",
            deadline=None,
            derandomize=True,
            database=None,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        )
        hypothesis.settings.load_profile("mutation")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        for item in items:
            for name in getattr(item, "fixturenames", ()):
                self._users[name].add(item.nodeid)
        if self.order is not None:
            place = {name: number for number, name in enumerate(self.order)}
            items[:] = sorted(
                (one for one in items if one.nodeid in place), key=lambda one: place[one.nodeid]
            )

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        # What a shared fixture elaborates is there in every test that has it.
        shared = fixturedef.scope != "function"
        if shared:
            self._fixtures.append(fixturedef.argname)
        yield
        if shared:
            self._fixtures.pop()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._test, started = item.nodeid, time.monotonic()
        yield
        proof = self.active is None and item.nodeid.startswith(PROOFS)
        self.seconds[item.nodeid] = PROOF_SECONDS if proof else time.monotonic() - started
        self._test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else report.longreprtext
            if any(words in text for words in OUT_OF_TIME):
                return
            self.failed[report.nodeid] = text.strip().partition("\n")[0][:200]
