"""The host kit: driver, processes, pages, regions, work queues, completion queues."""
