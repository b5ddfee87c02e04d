"""faults: links that fail, in a network under load and in a cluster."""
