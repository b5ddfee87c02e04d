"""Admission on a network whose VL tables are too short is refused before anything is written."""

from types import SimpleNamespace

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.network import AdmittedNetwork
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig

from .test_on_rtl import HCA, NETWORKS


@pytest.mark.parametrize(
    ("entries", "adapter_entries", "message"),
    [
        (17, 17, "admission: table_entries = 17: VL tables of the routers have 16"),
        (16, 15, "admission: table_entries = 16: VL tables of the adapters have 15"),
    ],
)
def test_tables_that_do_not_fit_are_refused(entries, adapter_entries, message):
    system = SimpleNamespace(
        config=AdapterNetworkConfig.on(NETWORKS["mesh"], HCA.replace(vl_table_entries=adapter_entries))
    )
    with pytest.raises(ConfigError) as error:
        AdmittedNetwork(system, AdmissionConfig(real_time_vls=(0,), table_entries=entries))
    assert str(error.value) == message
