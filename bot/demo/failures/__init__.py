"""Packaged failures for the demo and the benchmarks: realistic job logs and rank logs, made by code."""
