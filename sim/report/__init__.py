"""Reports to look at: a run, a sweep, or the whole reproduction, as one HTML file that needs no network."""
