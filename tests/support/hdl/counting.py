"""Counters that stand just before their wrap when a test begins."""


class Nearly:
    """A counter of a block in a simulation, `steps` counts before its wrap. Called with how many should have been
    counted since, it says what the counter shows."""

    def __init__(self, ctx, counter, steps=1):
        self._modulus = 1 << len(counter)
        self._start = self._modulus - steps
        ctx.set(counter, self._start)

    def __call__(self, count):
        """`count` on, modulo the counter's range."""
        return (self._start + count) % self._modulus
