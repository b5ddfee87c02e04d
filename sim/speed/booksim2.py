"""BookSim 2.0 as a peer: its configuration of a case, and its output.

Source: Jiang and others, A Detailed and Flexible Cycle-Accurate Network-on-Chip Simulator, IEEE ISPASS, 2013, and the
manual that comes with it.
"""

from __future__ import annotations

import re

from .cases import BUFFER_FLITS, PACKET_FLITS, VLS, BenchCase
from .peer import Peer, PeerRun, Stretch

__all__ = ["BookSim2"]

PERIOD_CYCLES = 500
"""Its sample period. Warm-up and measurement are so many periods."""
_MESH = re.compile(r"mesh(\d+)x(\d+)")


class BookSim2(Peer):
    """BookSim 2.0: square meshes under uniform load."""

    name = "booksim2"
    programs = ("booksim2", "booksim")
    # Its main function returns -1 for a simulation that has ended well.
    good = (0, 255)
    differences = (
        "Its router takes four cycles (route, VC, switch, crossbar) and the link one; ours five, the link in the last.",
        "Its router has buffers at inputs alone, of as many flits a VC; ours as many again a VL at each output.",
        "A packet takes any of its VCs that is free at each hop; ours keeps the VL that its source has drawn.",
        "Its allocators are iSLIP's of one iteration; ours matches more of what asks (the router's allocator).",
        "Its sources draw destinations among all nodes, themselves included; ours among the others.",
        "Its sources hold all packets that are born; ours defer births while their queue is full.",
        "Its speed is that of a long run less a short one, without its start-up; ours is under cocotb.",
    )

    def refuses(self, case: BenchCase) -> str:
        """Why it cannot run the case."""
        found = _MESH.fullmatch(case.model)
        if case.load is None or found is None or found[1] != found[2]:
            return "it is run on square meshes under load alone, such as mesh4x4@0.1"
        return ""

    def configuration(self, case: BenchCase, stretch: Stretch) -> str:
        """The file. Convergence is put out of reach, so that a run has the length that is asked for."""
        side = int(case.model.removeprefix("mesh").partition("x")[0])
        warmup = max(1, -(-stretch.warmup_cycles // PERIOD_CYCLES))
        measured = max(1, -(-stretch.cycles // PERIOD_CYCLES))
        values = {
            "topology": "mesh",
            "k": side,
            "n": 2,
            "routing_function": "dor",
            "router": "iq",
            "num_vcs": VLS,
            "vc_buf_size": BUFFER_FLITS,
            "routing_delay": 1,
            "vc_alloc_delay": 1,
            "sw_alloc_delay": 1,
            "st_prepare_delay": 0,
            "st_final_delay": 1,
            "credit_delay": 1,
            "input_speedup": 1,
            "output_speedup": 1,
            "internal_speedup": "1.0",
            "vc_allocator": "islip",
            "sw_allocator": "islip",
            "alloc_iters": 1,
            "traffic": "uniform",
            "injection_process": "bernoulli",
            # With a point or exponent: its parser takes a value without one for that of an integer field.
            "injection_rate": repr(float(case.load or 0)),
            "injection_rate_uses_flits": 1,
            "packet_size": PACKET_FLITS,
            "sim_type": "throughput",
            "sample_period": PERIOD_CYCLES,
            "warmup_periods": warmup,
            "max_samples": warmup + measured,
            "acc_stopping_thres": "0.0",
            "sim_count": 1,
            "seed": stretch.seed,
        }
        return "".join(f"{name} = {value};\n" for name, value in values.items())

    def parse(self, text: str) -> PeerRun:
        """The run: its last `Time taken`, and the averages after its headline of the whole."""
        times = re.findall(r"Time taken is (\d+) cycles", text)
        if not times:
            raise ValueError("'Time taken is ... cycles'")
        _, headline, whole = text.rpartition("Overall Traffic Statistics")
        if not headline:
            raise ValueError("'Overall Traffic Statistics'")
        found = {}
        for name in ("Packet latency", "Accepted flit rate"):
            value = re.search(rf"^{name} average\s*=\s*([0-9.eE+-]+)", whole, re.MULTILINE)
            try:
                found[name] = float(value[1]) if value else float("nan")
            except ValueError:
                found[name] = float("nan")
            if found[name] != found[name]:
                raise ValueError(f"'{name} average = ...' after its headline")
        return PeerRun(
            cycles=int(times[-1]),
            latency_cycles=found["Packet latency"],
            accepted=found["Accepted flit rate"],
        )
