"""The verdict of a run, in numbers and in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from .compare import compared
from .folders import RunData
from .page import Tone

__all__ = ["Verdict", "run_verdict"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The results of a run against the published ones, counted.

    - `within`, `values`: published values within their tolerance, and all that were compared.
    - `held`, `claims`: claims that hold, and all that were judged.
    - `not_judged`: claims that were not.
    """

    within: int
    values: int
    held: int
    claims: int
    not_judged: int

    @property
    def out(self) -> int:
        """Published values that are out of their tolerance."""
        return self.values - self.within

    @property
    def broken(self) -> int:
        """Claims that do not hold."""
        return self.claims - self.held

    @property
    def tone(self) -> Tone:
        """Good if all is as published, bad if something is not, unsure if nothing was judged."""
        if self.out or self.broken:
            return "bad"
        return "good" if self.values or self.claims else "unsure"

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        return {"bad": "OUT", "good": "within", "unsure": "not judged"}[self.tone]

    @property
    def words(self) -> str:
        """The verdict in a line."""
        parts = []
        if self.values:
            parts.append(f"{self.within} of {self.values} published values within tolerance")
        if self.claims:
            parts.append(f"{self.held} of {self.claims} claims hold")
        if self.not_judged:
            parts.append(f"{self.not_judged} not judged")
        return ", ".join(parts) or "Nothing is published to compare with, and no claim was judged"


def run_verdict(run: RunData) -> Verdict:
    """The verdict of a run."""
    values = [one for one in compared(run) if one.within is not None]
    claims = [claim.get("holds") for claim in run.facts["claims"]]
    judged = [holds for holds in claims if isinstance(holds, bool)]
    return Verdict(
        within=sum(one.within is True for one in values),
        values=len(values),
        held=sum(judged),
        claims=len(judged),
        not_judged=len(run.facts.get("claims_not_judged") or ()) + len(claims) - len(judged),
    )
