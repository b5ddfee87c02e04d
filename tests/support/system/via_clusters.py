"""Small clusters for VIA's designs beside `owner_cluster`, each the least card of a rung of the ladder."""

from support.system.owner_cluster import CONFIG as OWNERS

QUEUES = {"host_dma_queue_entries": 4, "send_queue_entries": 2, "receive_queue_entries": 2}
TWO = OWNERS.replace(
    nic=OWNERS.nic.replace(
        **QUEUES, processors=2, receive_doorbells="separate", doorbell_priorities=1, sram_bytes=16384
    ),
    firmware="via",
)
"""Two processors, and a queue in hardware before each engine."""
BASE = OWNERS.replace(
    nic=OWNERS.nic.replace(doorbell="polled", doorbell_priorities=1, host_dma_queue_entries=0),
    firmware="via",
)
"""Polled doorbell words, and no queue in hardware."""
QUEUED = BASE.replace(nic=BASE.nic.replace(**QUEUES))
"""Polled doorbell words, and a queue in hardware before each engine."""
