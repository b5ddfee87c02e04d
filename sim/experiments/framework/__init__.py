"""Machinery of every experiment: parameters, points, runs, results, plots, repetitions."""
