"""Words of bandwidth that the bandwidth manager and its callers share: rates, sizes, refusals."""
