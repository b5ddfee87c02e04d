"""Waveforms: what is recorded, how it is named, the save file for GTKWave."""
