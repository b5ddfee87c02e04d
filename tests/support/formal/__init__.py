"""The harness of the proofs."""
