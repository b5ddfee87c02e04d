"""A small cluster whose cards have all that owners have: one build for all tests of it."""

from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.systems.cluster import cluster_preset

NIC = preset(
    NicConfig,
    "tiny",
    owners=4,
    receive_doorbells="merged",
    doorbell_priorities=2,
    shadow_windows=True,
    completion_queues=4,
    completion_batch=2,
    regions=4,
    translation_entries=4,
    host_dma_queue_entries=4,
)
CONFIG = cluster_preset("tiny", nic=NIC, firmware="work_queue", memory_bytes=1 << 18, watchdog_cycles=100_000)
