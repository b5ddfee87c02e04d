"""The host channel adapter: queue pairs, completion queues and traffic classes in hardware (yum-2006 3.2)."""
