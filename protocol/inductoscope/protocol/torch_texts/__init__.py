"""What torch writes for people, read: graph breaks, reasons to recompile, names of guarded values.

Both sides read such texts: the compiler as they are made, the server in traces of other runs.  Knows no torch.
"""
