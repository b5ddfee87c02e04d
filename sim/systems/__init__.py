"""Systems under test: cluster of cards, networks of traffic nodes and of Python hosts, a rate unit."""
