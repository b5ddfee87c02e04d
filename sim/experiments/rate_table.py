"""rate-table: the thesis' own example of rate control, slot by slot, on the unit in the card.

gulati-thesis-2001 3.2.2, table 3.1: two flows that always have something to send, IDTs of 2 T and 3 T; the sender
serves at most one packet every T. Here a coroutine on the card's processor port does what SDMA does (4.2.2). Once every
T, which is `ticks_per_T` ticks of the card's clock, it reads the unit's offer and says that the packet is dispatched.
NDTs are read just before, as in the table, and given in units of T from the first slot on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ..published import source, table
from .framework.base import Claim, Experiment, Outcome, Point, Size, within
from .measure.gm_flows import SHARE_TOLERANCE, T_TICKS, proportions, shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster

__all__ = ["RateTable", "RateTableParameters"]

PUBLISHED = table("rate-table")
IDTS = list(PUBLISHED["idt"].values())
SLOTS = len(PUBLISHED["dispatched"])
"""Slots of the published table, which are those that are shown."""
ALL_SLOTS = {"quick": 60, "full": 600}
"""Slots that are run. The published pattern repeats every 6 of them."""
START_TICKS = 8
"""Time from the set-up of the flows to slot 0: longer than the set-up takes, 100 cycles or so."""
Idt = Annotated[int, Field(ge=1, le=60)]


class RateTableParameters(Config):
    """Parameters of rate-table; the defaults are the published set-up."""

    idt_over_T: list[Idt] = Field(
        IDTS,
        min_length=1,
        max_length=8,
        description="IDT of every flow in units of T",
        json_schema_extra={"range": "list of 1 to 8 IDTs, each 1 to 60"},
    )
    ticks_per_T: int = Field(
        T_TICKS, ge=8, le=1000, description="T in ticks; 8 ticks are enough for the accesses of a slot"
    )


class RateTable(Experiment):
    """Table 3.1."""

    name = "rate-table"
    asks = "Does the rate control unit dispatch as the thesis' own example says, slot by slot?"
    source = source("rate-table")
    entry = "lanikai.sim.experiments.rate_table:measure"
    Parameters = RateTableParameters
    by_flow = ("dispatched", "ndt_*")
    element = "slot"

    def points(self, parameters: RateTableParameters, size: Size) -> list[Point]:
        """One point."""
        published = None
        if parameters.idt_over_T == IDTS:
            published = {
                "dispatched": PUBLISHED["dispatched"],
                "ndt_A_over_T": PUBLISHED["ndt_A"],
                "ndt_B_over_T": PUBLISHED["ndt_B"],
            }
        return [
            Point(
                label="IDT " + " ".join(f"{idt}T" for idt in parameters.idt_over_T),
                parameters=parameters.model_dump(mode="json"),
                spec={**parameters.model_dump(mode="json"), "slots": ALL_SLOTS[size]},
                published=published,
                tolerance=published and dict.fromkeys(published, 0.0),
            )
        ]

    def cluster(self, parameters: RateTableParameters) -> Any:
        """One card; the rest stays idle."""
        from .measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """The first slots as the table has them; packets of each flow in all slots."""
        flows = range(len(point.parameters["idt_over_T"]))
        rows = measured["rows"]
        found: dict[str, Any] = {
            "dispatched": [
                "-" if row["flow"] is None else ascii_uppercase[row["flow"]] for row in rows[:SLOTS]
            ]
        }
        for flow in flows:
            ticks = [row["ndt_ticks"][flow] for row in rows[:SLOTS]]
            found[f"ndt_{ascii_uppercase[flow]}_over_T"] = [
                one / point.parameters["ticks_per_T"] for one in ticks
            ]
        found["packets"] = [sum(row["flow"] == flow for row in rows) for flow in flows]
        found["slots"] = len(rows)
        return found

    def claims(self, parameters: RateTableParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The ratio of the packets, where the sender can serve all that the IDTs ask for."""
        ratio = " : ".join(f"1/{idt}" for idt in parameters.idt_over_T)
        asked = sum(1 / idt for idt in parameters.idt_over_T)
        return [
            Claim.every(
                f"packets are dispatched in the ratio {ratio} (a packet of each flow more or less)",
                (self._in_proportion(parameters, outcome.results) for outcome in outcomes),
            ).unless(f"the IDTs ask for {asked:.2f} packets a slot" if asked > 1 else "")
        ]

    @staticmethod
    def _in_proportion(parameters: RateTableParameters, found: Mapping[str, Any]) -> bool:
        return all(
            abs(packets - found["slots"] / idt) <= 1
            for packets, idt in zip(found["packets"], parameters.idt_over_T, strict=True)
        ) and (
            found["slots"] < 600
            or within(shares(found["packets"]), proportions(parameters.idt_over_T), SHARE_TOLERANCE)
        )

    def plot(self, parameters: RateTableParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """NDT of every flow against the slot, crosses where the table has it, and a mark where its packet goes."""
        axes = figure.add_subplot()
        found, published = outcomes[0].results, outcomes[0].point.published or {}
        slots = range(len(found["dispatched"]))
        for flow, name in enumerate(ascii_uppercase[: len(parameters.idt_over_T)]):
            ndts = found[f"ndt_{name}_over_T"]
            style = "--" if flow % 2 else "-"  # where two flows have the same NDT both are seen
            axes.step(slots, ndts, where="post", linestyle=style, color=f"C{flow}", label=f"NDT of {name}")
            if f"ndt_{name}_over_T" in published:
                axes.plot(
                    slots, published[f"ndt_{name}_over_T"], "x", color=f"C{flow}", label=f"{name}, published"
                )
            gone = [slot for slot in slots if found["dispatched"][slot] == name]
            axes.plot(gone, gone, "o", color=f"C{flow}", label=f"packet of {name}")
        axes.plot(slots, slots, color="grey", linewidth=0.8, label="t")
        axes.set_xlabel("time t (T, a slot each)")
        axes.set_ylabel("NDT (T)")
        axes.set_title("NDT of every flow, slot by slot" + (" (table 3.1)" if published else ""))
        axes.legend()


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run the table on node 0's card.

    The result has a row for each slot from slot 0 on: the `flow` dispatched in it or None, and the `ndt_ticks` of every
    flow before.
    """
    from lanikai.firmware import registers

    port = cluster.nodes[0].processor
    wrap = 1 << cluster.config.nic.rtc_bits

    async def read(name: str) -> dict[str, int]:
        return registers.unpack(name, await port.read(registers.address(name)))

    async def write(name: str, **fields: int) -> None:
        await port.write(registers.address(name), registers.pack(name, **fields))

    slot_ticks, flows = spec["ticks_per_T"], range(len(spec["idt_over_T"]))
    start = ((await read("RTC"))["ticks"] + START_TICKS) % wrap
    for flow in flows:
        await write("RATE_SELECT", flow=flow)
        await write("RATE_IDT", ticks=spec["idt_over_T"][flow] * slot_ticks)
        await write("RATE_NDT", ticks=start)
        await write("RATE_COMMAND", enqueue=1)
    rows = []
    for slot in range(spec["slots"]):
        # Until the clock has come to the slot's tick; compared as the unit does, right across its wrap.
        while (start + slot * slot_ticks - 1 - (await read("RTC"))["ticks"]) % wrap < wrap // 2:
            pass
        ndts = []
        for flow in flows:
            await write("RATE_SELECT", flow=flow)
            ndts.append(((await read("RATE_NDT"))["ticks"] - start) % wrap)
        offer = await read("RATE_DISPATCH")
        if offer["valid"]:
            await write("RATE_DISPATCH", flow=offer["flow"])
        rows.append({"flow": offer["flow"] if offer["valid"] else None, "ndt_ticks": ndts})
        if slot % 16 == 15:
            cluster.progress((slot + 1) / spec["slots"], f"{slot + 1} of {spec['slots']} slots")
    return {"rows": rows}
