"""Sweeps: targets x inputs x modes x devices, measured as tasks of Ray, which alone decides where each one runs.

Only `cluster` knows Ray, which is an optional dependency; `task` is what travels to its nodes.
"""
