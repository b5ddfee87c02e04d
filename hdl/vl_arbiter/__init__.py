"""Arbiters of virtual lanes, with weights, tables and priorities: one file each; `registry` names them."""
