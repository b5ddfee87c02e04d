"""Build and run, the cluster, host libraries, experiments."""
