"""Queues of descriptors before the engines: in order of arrival, of time stamps, or a lane each."""
