"""Small routers and adapters on which admission is tested. All tests have the same, so that they are built once."""

from __future__ import annotations

from lanikai.hdl.config import HcaConfig, LinkConfig, RouterConfig, preset

__all__ = ["ADMISSION", "HCA", "ROUTER"]

LINK = LinkConfig(flit_bits=128, vls=16, hop_bits=3)
HCA = preset(HcaConfig, "tiny").replace(
    link=LINK,
    packet_flits=10,
    completion_queues=16,
    queue_pairs=16,
    regions=8,
    translation_entries=16,
    vl_table_entries=16,
)
ROUTER = RouterConfig(
    link=LINK,
    ports=6,
    input_buffer_flits=4,
    output_buffer_flits=4,
    management=True,
    vl_arbiter="table_fast",
    vl_table_entries=16,
)
ADMISSION = {"link_units": 100, "real_time_vls": (0, 1, 2), "table_entries": 16}
"""Fields of `AdmissionConfig`."""
