"""Counters that stand just before their wrap when a test begins."""


class Nearly:
    """A counter of a block in a simulation, `steps` counts before its wrap.

    A call with the number of counts since then says what the counter shows.
    """

    def __init__(self, ctx, counter, steps=1):
        self._modulus = 1 << len(counter)
        self._start = self._modulus - steps
        ctx.set(counter, self._start)

    def __call__(self, count):
        """The counter's value after `count` counts, modulo its range."""
        return (self._start + count) % self._modulus
