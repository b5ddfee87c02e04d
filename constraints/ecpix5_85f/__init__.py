"""ECPIX-5 with an LFE5UM5G-85F."""
