"""The VI Architecture's control programs: three designs of firmware on one set of words and stages.

Sources: the Virtual Interface Architecture Specification 1.0; nagar-thesis-2001 chapters 4 and 5.

- `config`: sizes and choices, and the designs by name.
- `descriptor`: descriptors as the specification lays them out.
- `layout`: records, packets, and the places of all in the SRAM.
- `schedulers`: the stamps by which messages of VIs with a rate go first.
"""
