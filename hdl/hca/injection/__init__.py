"""Injection control: whether a message may begin, one file a policy behind one interface (yum-2006 4.2, 5.1)."""
