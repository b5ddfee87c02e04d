"""Mutation of the RTL: one operator changed at a time, to see whether the tests and proofs of its file notice.

`python -m support.mutation` (with `tests` on the path; `make mutate`) does it; docs/mutation.md says how to read it.
"""
