"""Admission of real-time connections by probes, and their part of the peak power control (yum-2006 3.3, 4.1, 5.1)."""
