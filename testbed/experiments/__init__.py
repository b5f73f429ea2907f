"""Experiments: run, report, analyse, sweep, compare, regulate, and the numbers of papers."""
