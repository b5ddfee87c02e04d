"""Plain Python models of the switch allocators: who sends which VL where, cycle by cycle.

`step(wants)` takes, for each input, a dict of VL to output (`THROW` for a flit to be thrown away). It returns, for each
input, (VL, output) or None.
"""

THROW = -1


def in_turn(candidates, last, size):
    """The first of `candidates` after `last`, going round."""
    return min(candidates, key=lambda number: (number - last - 1) % size, default=None)


class Sweep:
    """A sweep, diagonal by diagonal, over the inputs and outputs that are left. The first diagonal moves on when
    something is given."""

    def __init__(self, ports):
        self.ports, self.start = ports, 0

    def match(self, wants, inputs, outputs):
        """A dict of input to output. Matched ones are removed from the sets `inputs` and `outputs`."""
        given = {}
        for k in range(self.ports):
            for i in range(self.ports):
                p = (self.start + k - i) % self.ports
                if i in inputs and p in outputs and p in wants[i].values():
                    inputs.remove(i)
                    outputs.remove(p)
                    given[i] = p
        self.start = (self.start + bool(given)) % self.ports
        return given


class SeparableModel:
    """Round robin at inputs and outputs; a turn is taken only by a pick that is followed. Then a sweep."""

    def __init__(self, ports, vls, control=None):
        self.ports, self.vls, self.control = ports, vls, control
        self.last_vl = [vls - 1] * ports
        self.last_input = [ports - 1] * ports
        self.last_extra = [vls - 1] * ports
        self.sweep = Sweep(ports)

    def first_choices(self, wants):
        choices = [
            self.control if self.control in want else in_turn(want, self.last_vl[i], self.vls)
            for i, want in enumerate(wants)
        ]
        moves = [None] * self.ports
        for i, vl in enumerate(choices):
            if vl is not None and wants[i][vl] == THROW:
                moves[i] = vl, THROW
        for p in range(self.ports):
            asking = [i for i, vl in enumerate(choices) if vl is not None and wants[i][vl] == p]
            urgent = [i for i in asking if choices[i] == self.control]
            winner = in_turn(urgent or asking, self.last_input[p], self.ports)
            if winner is not None:
                self.last_input[p] = winner
                moves[winner] = choices[winner], p
        for i, move in enumerate(moves):
            if move and move[0] != self.control:
                self.last_vl[i] = move[0]
        return moves

    def step(self, wants):
        moves = self.first_choices(wants)
        inputs = {i for i, move in enumerate(moves) if not move}
        outputs = set(range(self.ports)) - {move[1] for move in moves if move}
        given = self.fill(wants, inputs, outputs)
        for i, p in given.items():
            asking = [vl for vl, output in wants[i].items() if output == p]
            vl = self.last_extra[i] = in_turn(asking, self.last_extra[i], self.vls)
            moves[i] = vl, p
        return moves

    def fill(self, wants, inputs, outputs):
        return self.sweep.match(wants, inputs, outputs)


class WavefrontModel(SeparableModel):
    """The separable allocator's grants; then one exchange."""

    def __init__(self, ports, vls, control=None):
        super().__init__(ports, vls, control)
        self.exchanges = 0

    def fill(self, wants, inputs, outputs):
        start = self.sweep.start
        given = super().fill(wants, inputs, outputs)
        self._exchange(wants, given, inputs, outputs, start)
        return given

    def _exchange(self, wants, given, inputs, outputs, start):
        """Let one free input take a given output from an input that can go elsewhere."""

        def elsewhere(i):
            return min(outputs & set(wants[i].values()), default=None)

        movable = {p: i for i, p in given.items() if elsewhere(i) is not None}
        wanting = [i for i in inputs if movable.keys() & set(wants[i].values())]
        newcomer = in_turn(wanting, start - 1, self.ports)
        if newcomer is not None:
            self.exchanges += 1
            taken = min(movable.keys() & set(wants[newcomer].values()))
            given[movable[taken]] = elsewhere(movable[taken])
            given[newcomer] = taken


class IslipModel:
    """Outputs grant, inputs accept, some times over. A sweep follows if that may leave something; then each input's VLs
    go in turn."""

    def __init__(self, ports, vls, control=None, *, iterations):
        self.ports, self.vls, self.control, self.iterations = ports, vls, control, iterations
        self.last_input = [ports - 1] * ports
        self.last_output = [ports] * ports
        self.last_vl = {}  # (input, output): the VL that went last
        self.sweep = Sweep(ports) if vls > 1 and iterations < ports else None

    def step(self, wants):
        ports = range(self.ports)
        match = {}
        for turn in range(self.iterations):
            grants = {}
            for p in set(ports) - set(match.values()):
                asking = [i for i in ports if i not in match and p in wants[i].values()]
                urgent = [i for i in asking if wants[i].get(self.control) == p]
                if asking:
                    grants[p] = in_turn(urgent or asking, self.last_input[p], self.ports)
            for i in ports:
                offers = [p for p, winner in grants.items() if winner == i]
                urgent = [p for p in offers if wants[i].get(self.control) == p]
                if i not in match and THROW in wants[i].values():
                    offers.append(self.ports)
                chosen = in_turn(urgent or offers, self.last_output[i], self.ports + 1)
                if chosen is None:
                    continue
                match[i] = chosen
                if turn == 0 and not urgent:
                    self.last_output[i] = chosen
                    if chosen < self.ports:
                        self.last_input[chosen] = i
        if self.sweep is not None:
            match |= self.sweep.match(wants, set(ports) - match.keys(), set(ports) - set(match.values()))
        moves = [None] * self.ports
        for i, output in match.items():
            output = THROW if output == self.ports else output
            asking = [vl for vl, wanted in wants[i].items() if wanted == output]
            if self.control in asking:
                vl = self.control
            else:
                vl = in_turn(asking, self.last_vl.get((i, output), self.vls - 1), self.vls)
                self.last_vl[i, output] = vl
            moves[i] = vl, output
        return moves
