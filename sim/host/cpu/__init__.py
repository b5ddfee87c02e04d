"""Host processors with time of their own: processes, schedulers, interrupts, and what they cost.

`docs/host-processors.md` is the guide. A `Host` runs `HostProcess`es on one processor or more, and a `HostScheduler`
says whose turn it is. Time is a `Timekeeper`: by events alone (`event_time`), or a simulation's clock (`clock_time`).
"""
