"""VIA on the host: the library (VIPL), the kernel agent, admission.

- `admission`: promises of a card to VIs with a rate.
"""
