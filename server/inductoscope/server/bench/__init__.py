"""Benchmarks around single runs: many at once, revisions against each other, a history, and what is beyond noise.

How one program is measured is the compiler's business; here are only its results.
"""
