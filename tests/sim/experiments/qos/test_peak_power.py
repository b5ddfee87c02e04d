"""Claims of peak-power: each fails when what it says does not hold. No simulator."""

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.energy.activity import Activity
from lanikai.sim.energy.adapter import AdapterActivity, AdapterEnergies
from lanikai.sim.energy.table import published_energy
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.power.peak import PeakPower
from lanikai.sim.experiments.power.peak_setup import SCHEMES, PeakPowerParameters
from lanikai.sim.experiments.power.peak_windows import adapters_w, powers_w

PARAMETERS = PeakPowerParameters(loads=[0.5, 0.7], real_time_shares=[0.5, 0.0, 1.0])
BUDGET = 9.0
LATENCY = {"none": 4.0, "congestion": 4.0, "power": 1.0, "power_herd": 20.0}


def judged(change=lambda scheme, share, load, results: None, parameters=PARAMETERS):
    """Verdicts on outcomes as the document has them, and one that `change` has made worse."""
    experiment = PeakPower()
    outcomes = []
    for point in experiment.points(parameters, "quick"):
        scheme, share, load = (point.parameters[one] for one in ("scheme", "real_time_share", "load"))
        power = {"none": 18.0, "congestion": 17.0, "power": 12.0, "power_herd": 12.5}[scheme] * load
        if scheme == "power" and share == 1:
            power += 0.5
        latency = LATENCY[scheme] if load > 0.5 else 1.0
        results = {
            "budget_w": BUDGET,
            "power_w": power,
            "windows": 20,
            "windows_above": 0 if scheme in ("power", "power_herd") else 20,
            "latency_us": latency,
            "latency_real_time_us": latency,
            "latency_best_effort_us": latency,
            "throughput": load,
            "failed": 0,
        }
        change(scheme, share, load, results)
        outcomes.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


def worse(scheme, share, load, name, value):
    def change(this, part, at, results):
        if (this, part, at) == (scheme, share, load):
            results[name] = value

    return change


def test_what_is_published_holds():
    assert judged() == [True] * 10 + [None]


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        (0, worse("none", 0.5, 0.5, "power_w", BUDGET * 1.11)),
        (0, worse("none", 0.5, 0.5, "power_w", BUDGET * 0.89)),
        (0, worse("none", 0.5, 0.5, "power_w", None)),
        (1, worse("power", 0.0, 0.5, "windows_above", 1)),
        (1, worse("power", 0.5, 0.7, "windows", 0)),
        (2, worse("power_herd", 0.5, 0.7, "windows_above", 1)),
        (2, worse("power_herd", 0.5, 0.7, "power_w", None)),
        (3, worse("congestion", 0.5, 0.7, "power_w", BUDGET - 0.1)),
        (4, worse("power", 0.5, 0.5, "latency_real_time_us", 1.06)),
        (5, worse("none", 0.5, 0.7, "latency_best_effort_us", 0.94)),
        (6, worse("power_herd", 0.5, 0.7, "latency_us", 7.9)),
        (7, worse("power", 0.0, 0.7, "power_w", 8.8)),
        (8, worse("power", 1.0, 0.7, "power_w", 8.7)),
        (9, worse("none", 0.5, 0.5, "failed", 1)),
        (9, worse("power", 0.5, 0.7, "throughput", 0.0)),
    ],
)
def test_a_claim_fails_for_what_it_denies(claim, change):
    verdicts = judged(change)
    assert verdicts[claim] is False
    assert sum(one is False for one in verdicts) == 1


def test_claims_that_have_no_point_are_not_judged():
    verdicts = judged(parameters=PARAMETERS.replace(loads=[0.5], real_time_shares=[0.5]))
    assert verdicts[0] is True and verdicts[3] is verdicts[6] is verdicts[7] is verdicts[8] is None


def test_windows_begin_at_every_sample():
    samples = [Activity(link_flits=count).as_list() for count in (5, 0, 1, 4, 0)]
    found = powers_w(samples, sample_cycles=50, window_cycles=100, flit_bits=128, cycle_ns=2.0)
    flit_nj = 128 * published_energy().link_per_bit / 1e9
    assert found == pytest.approx([count * flit_nj / 200 for count in (5, 1, 5, 4)])
    assert powers_w(samples[:1], sample_cycles=50, window_cycles=100, flit_bits=128, cycle_ns=2.0) == []


def test_the_power_of_adapters_is_the_mean_of_all_samples():
    samples = [AdapterActivity(link_flits=count, bus_beats=1).as_list() for count in (5, 0, 1)]
    found = adapters_w(samples, sample_cycles=50, flit_bits=128, cycle_ns=2.0)
    prices = AdapterEnergies.derived(published_energy(), flit_bits=128)
    assert found == pytest.approx((6 * prices.link_flits + 3 * prices.bus_beats) / 1e9 / 300)
    assert adapters_w([], sample_cycles=50, flit_bits=128, cycle_ns=2.0) is None


def test_the_budget_is_divided_by_the_traffics_ratio():
    """Energies of table 1: E_router and E_link of a 4 x 4 mesh, whose packets take 8/3 hops in the mean."""
    router, link = PARAMETERS.prices_pj
    assert (router, link) == (204, 1307)
    hops = 8 / 3
    flit_pj = PARAMETERS.budget_pj / (16 * 0.5)
    assert flit_pj == pytest.approx((hops + 1) * router + hops * link, rel=0.002)
    assert PARAMETERS.budget_w == pytest.approx(PARAMETERS.budget_pj / 3760)
    # A router may promise as many flits as its part of real time's budget pays for.
    units = PARAMETERS.power_units(0.5)
    assert units == int(0.5 * PARAMETERS.budget_pj / 16 / (router + link) * 1020)
    assert PARAMETERS.power_units(1.0) in (2 * units, 2 * units + 1)
    assert PARAMETERS.adapter_budget_pj(0.5) == int(0.5 * PARAMETERS.budget_pj / 16 * 500)
    herd = PARAMETERS.herd()
    assert herd["power_budget"] * 16 <= PARAMETERS.budget_pj * 500
    assert herd["power_weights"] == (router, router) + (router + link,) * 4


def test_what_an_adapter_holds_is_back_after_the_window_and_no_sooner():
    mix = PARAMETERS.mix("power", load=0.7, real_time_share=0.5, size="quick", sample_cycles=50)
    words = {(kind, node): value for kind, node, value in mix.setup[5]}
    cycles = [words[2, node] + 40 for node in range(16) if node != 5]
    assert min(cycles) == 500
    assert words[3, 0] == PARAMETERS.adapter_budget_pj(0.5) and words[4, 0] == 0b100
    # Every packet fits.
    assert max(words[1, node] for node in range(16) if node != 5) * 40 <= words[3, 0]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_controls_are_where_the_scheme_says(scheme):
    mix = PARAMETERS.mix(scheme, load=0.7, real_time_share=0.5, size="quick", sample_cycles=50)
    system = PARAMETERS.system(scheme)
    assert bool(mix.setup) == system.hca.power_control == (scheme == "power")
    assert (mix.power_units is not None) == mix.admission == (scheme == "power")
    assert (mix.credits == "global") == (scheme in ("congestion", "power"))
    assert bool(system.network.router.power_budget) == (scheme == "power_herd")


def test_no_claim_goes_by_the_length_of_a_cycle():
    """Power and budget scale alike."""
    other = PARAMETERS.replace(cycle_ns=51.2)
    assert other.budget_w * 51.2 == pytest.approx(PARAMETERS.budget_w * 3.76)
    assert abs(other.power_units(0.5) - PARAMETERS.power_units(0.5)) <= 1
    assert other.herd() == PARAMETERS.herd()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemes": ["herd"]}, "schemes: 'herd': one of none, congestion, power, power_herd"),
        ({"loads": [1.5]}, "loads: 1.5: above 0 and at most 1"),
        ({"real_time_shares": [-0.5]}, "real_time_shares: -0.5: 0 to 1"),
        ({"network": "ring4"}, "network = 'ring4': a mesh"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        PARAMETERS.replace(**changes)
    assert str(error.value) == f"PeakPowerParameters: {message}"


def test_a_budget_that_no_packet_fits_is_refused():
    """With little best effort an adapter's part is less than the longest way takes."""
    with pytest.raises(
        ConfigError, match=r"a packet of 40 flits to node 15 takes 370600 pJ, and would never begin$"
    ):
        PARAMETERS.mix("power", load=0.7, real_time_share=0.8, size="quick", sample_cycles=50)
