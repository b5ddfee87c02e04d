"""Arguments of MPI calls: element types, buffers, statuses, requests, operations."""
