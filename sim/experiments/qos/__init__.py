"""Workloads of the experiments on quality of service (yum-2006 6.2), and those experiments."""
