"""Sweeps: an experiment over a grid of parameters, on this machine's cores or on a Dask cluster."""
