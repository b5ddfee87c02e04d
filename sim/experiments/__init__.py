"""One module an experiment, and the registry that lists them."""
