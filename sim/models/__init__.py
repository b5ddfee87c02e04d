"""Models around the RTL: the host and its PCI bus, the processor's mailbox, a router's agent."""
