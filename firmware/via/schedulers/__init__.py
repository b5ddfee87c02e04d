"""Schedulers of QoS-aware VIA: each gives a message the stamp by which the card's queues order it.

One file an algorithm. To add one: write a class of `Scheduler` beside these, and name it in `registry`.

- `base`: rates, and the interface that the firmware uses.
- `virtual_clock`: VirtualClock, as nagar-thesis-2001 5.3.3 has it.
- `wf2q`: WF2Q+ (Bennett and Zhang 1997).
- `deficit`: deficit round robin (Shreedhar and Varghese 1995), its rounds as stamps.
- `registry`: the schedulers by name.
"""
