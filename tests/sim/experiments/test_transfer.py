"""The plot of `transfer`: bytes over time, sent and landed."""

from lanikai.sim.experiments.framework.base import Outcome, Point
from lanikai.sim.experiments.transfer import Transfer
from matplotlib.figure import Figure


def test_the_plot_shows_every_message_twice():
    series = {
        "bytes": [1024, 1024, 512],
        "sent_cycles": [0, 330, 660],
        "landed_cycles": [3300, 6600, 9900],
        "clock_hz": 33_000_000,
    }
    outcome = Outcome(
        point=Point(label="a file", parameters={}, spec={}),
        results={"bandwidth_mb_per_s": 8.5, "latency_mean_us": 190.0},
        seed=1,
        cycles=1,
        wall_seconds=1.0,
        series=series,
    )
    figure = Figure()
    Transfer().plot(None, [outcome], figure)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    sent, landed = lines["sent"], lines["in the receiver's memory"]
    assert list(sent.get_xdata()) == [0, 10, 20] and list(landed.get_xdata()) == [100, 200, 300]
    assert list(sent.get_ydata()) == list(landed.get_ydata()) == [1, 2, 2.5]
    assert axes.get_title() == "a file: 8.5 MB/s, 190 \u00b5s a message"
