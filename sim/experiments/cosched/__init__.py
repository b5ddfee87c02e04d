"""cosched: the coscheduling strategies of nagar-thesis-2001 chapter 6, on workloads of parallel jobs."""
