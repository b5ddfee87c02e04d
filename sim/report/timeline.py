"""The timeline of messages: who has each of them when, from the host by bus, card and routers to the other host.

It is drawn of a run's table `timeline` (`lane`, `message`, `stage`, `begin_cycle`, `end_cycle`). A trace for Perfetto,
in the form of Chrome's trace events, is drawn as well. In one of `lanikai waves DIR --trace` each router and node that
a packet passes is a lane (`packet_way.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..user_files import read_json
from .packet_way import is_packet, is_state, stays
from .page import Chart, Column, Fold, Note, Part, Table, plain
from .tables import Tables
from .words import cell, is_number

__all__ = ["Span", "timelines", "trace_spans"]

COLUMNS = ("lane", "message", "stage", "begin_cycle", "end_cycle")
OF_WAVES = ".trace.json"
"""The end of the name of a trace that was made of a waveform; its unit of time is a cycle."""
TRACES = (
    "*perfetto*.json",
    "trace*.json",
    "points/*/*perfetto*.json",
    "points/*/trace*.json",
    f"points/*/*{OF_WAVES}",
)
"""Where a trace may be, from the run's folder on."""
MESSAGE_KEYS = ("message", "packet", "id", "sequence")
"""Arguments of an event that name its message; without any it is the event's name."""
NOBODY = "no message"
"""The name of work that is done for no one message."""
MOST_TRACES = 4
MOST_BYTES = 50_000_000
"""Largest trace that is read, bytes."""
MOST_MESSAGES = 12
MOST_SPANS = 1_500
"""Most bars of one timeline."""
MOST_LANES = 40


@dataclass(frozen=True)
class Span:
    """A time in which one `lane` (a bus, an engine, a router) has a `message`, and what it does with it."""

    lane: str
    message: str
    stage: str
    begin: float
    end: float


def timelines(tables: Tables) -> list[Part]:
    """A timeline for each point and trace, the first one open; a note where there is none."""
    found: list[tuple[str, str, list[Span]]] = []
    for row in tables.read("timeline", COLUMNS) or ():
        title = tables.point(row)
        if not found or found[-1][0] != title:
            found.append((title, "cycles", []))
        message = NOBODY if row["message"] is None or row["message"] == -1 else f"message {row['message']}"
        found[-1][2].append(Span(row["lane"], message, row["stage"], row["begin_cycle"], row["end_cycle"]))
    for file in _traces(tables.path):
        unit = "cycles" if file.name.endswith(OF_WAVES) else "µs"
        found.append((str(file.relative_to(tables.path)), unit, trace_spans(file)))
    parts: list[Part] = []
    for number, (title, unit, spans) in enumerate([one for one in found if one[2]][:MOST_MESSAGES]):
        parts.append(
            Fold(
                name=f"timeline-{number}",
                title=f"Timeline, {title}",
                badge=f"{len({span.message for span in spans})} messages",
                tone="",
                parts=[_chart(title, unit, spans), _table(title, unit, spans)],
                open=not number,
            )
        )
    return parts or [Note("The way of single messages was not recorded here.", "unsure")]


def _traces(folder: Path) -> list[Path]:
    files = dict.fromkeys(file for pattern in TRACES for file in sorted(folder.glob(pattern)))
    return [file for file in files if file.stat().st_size <= MOST_BYTES][:MOST_TRACES]


def trace_spans(file: Path) -> list[Span]:
    """The spans of a trace: complete events, and pairs of a begin and an end. Packets of a waveform have one span a
    router or node. Raises UserError for what is no trace."""
    trace = read_json(file, "trace", UserError)
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise UserError(f"trace {str(file)!r}: no list of trace events: run it again")
    names: dict[tuple[Any, Any], dict[str, str]] = {}
    for event in events:
        if event.get("ph") == "M":
            place = (event.get("pid"), event.get("tid") if event.get("name") == "thread_name" else None)
            names.setdefault(place, {})[str(event.get("name"))] = str(
                (event.get("args") or {}).get("name", "")
            )
    packets = [event for event in events if _is_whole(event) and is_packet(event)]
    places = {pid: one.get("process_name", "") for (pid, tid), one in names.items() if tid is None}
    ends = {place: one.get("thread_name", "") for place, one in names.items()}
    found = [Span(*stay) for stay in stays(packets, places, ends)]
    begun: dict[tuple[Any, Any, Any], list[Mapping[str, Any]]] = {}
    for event in events:
        kind, time = event.get("ph"), event.get("ts")
        if not is_number(time):
            continue
        key = (event.get("pid"), event.get("tid"), event.get("id"))
        if _is_whole(event):
            if is_packet(event):
                continue
            found.append(_span(event, names, time, time + event["dur"]))
        elif kind in ("B", "b"):
            begun.setdefault(key, []).append(event)
        elif kind in ("E", "e") and begun.get(key):
            first = begun[key].pop()
            found.append(_span(first, names, first["ts"], time))
    return sorted(found, key=lambda span: span.begin)


def _is_whole(event: Mapping[str, Any]) -> bool:
    return event.get("ph") == "X" and is_number(event.get("ts")) and is_number(event.get("dur"))


def _span(event: Mapping[str, Any], names: Mapping[Any, Mapping[str, str]], begin: float, end: float) -> Span:
    process = names.get((event.get("pid"), None), {}).get("process_name") or f"process {event.get('pid')}"
    thread = names.get((event.get("pid"), event.get("tid")), {}).get("thread_name", "")
    given = event.get("args") or {}
    message = next(
        (f"{key} {given[key]}" for key in MESSAGE_KEYS if key in given), str(event.get("name", ""))
    )
    if is_state(event):
        message = NOBODY
    lane = f"{process}, {thread}" if thread and thread != process else process
    return Span(lane, message, str(event.get("name", "")), begin, end)


def _chosen(spans: Sequence[Span]) -> tuple[list[str], list[Span]]:
    """The messages that are drawn, and their spans. Work for nobody is left out where no message is under way."""
    messages = list(dict.fromkeys(span.message for span in spans))[:MOST_MESSAGES]
    mine = [span for span in spans if span.message in messages]
    under_way = [span for span in mine if span.message != NOBODY] or mine
    first, last = min(span.begin for span in under_way), max(span.end for span in under_way)
    return messages, [span for span in mine if span.end >= first and span.begin <= last][:MOST_SPANS]


def _chart(title: str, unit: str, spans: Sequence[Span]) -> Chart:
    messages, shown = _chosen(spans)
    first = min(span.begin for span in shown)
    lanes = list(dict.fromkeys(span.lane for span in shown))[:MOST_LANES]
    traces: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        mine = [span for span in shown if span.message == message and span.lane in lanes]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": plain(message),
                "y": [plain(span.lane) for span in mine],
                "base": [span.begin - first for span in mine],
                "x": [max(span.end - span.begin, 0) for span in mine],
                "text": [plain(span.stage) for span in mine],
                "textposition": "none",
                "hovertemplate": f"%{{text}}<br>%{{base}} to %{{x}} {unit}<extra>%{{fullData.name}}</extra>",
                "marker": {
                    "color": "@muted" if message == NOBODY else f"@{number % 7}",
                    "line": {"color": "@page", "width": 1},
                },
            }
        )
    every = len({span.message for span in spans})
    cut = f" The first {len(messages)} of {every} messages are here." if every > len(messages) else ""
    names = [plain(lane) for lane in lanes]
    return Chart(
        title=f"Who has a message when, {title}",
        about=f"A bar is the time in which a lane has a message, {unit} from the first one on. A click on a message's "
        f"name hides it, a double click leaves it alone.{cut}",
        data=traces,
        layout={
            "barmode": "overlay",
            "xaxis": {"title": {"text": unit}},
            "yaxis": {
                "autorange": "reversed",
                "categoryorder": "array",
                "categoryarray": names,
                "tickfont": {"size": 11},
            },
            "showlegend": True,
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        },
        height=max(280, 160 + 30 * len(lanes)),
    )


def _table(title: str, unit: str, spans: Sequence[Span]) -> Table:
    _, shown = _chosen(spans)
    first = min(span.begin for span in shown)
    return Table(
        caption=f"The spans of the timeline, {title}",
        columns=[Column("message"), Column("lane"), Column("what"), Column(f"from ({unit})", True),
                 Column(f"to ({unit})", True), Column(f"takes ({unit})", True)],
        rows=[
            [cell(span.message), cell(span.lane), cell(span.stage), cell(span.begin - first), cell(span.end - first),
             cell(span.end - span.begin)]
            for span in shown
        ],
        note=f"These are the first {len(shown)} of {len(spans)} spans." if len(shown) < len(spans) else "",
    )  # fmt: skip
