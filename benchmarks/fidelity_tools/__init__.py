"""The parts of `fidelity.py`: records, the real side, the simulated side, and their comparison."""
