"""Measurements, side by side in one run: figures of one machine and one moment, to be compared only with each other."""
