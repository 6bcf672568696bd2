"""Warm processes: what every run needs is ready in a process that is forked for each run (Linux).

A warm process does nothing but wait, with one thread, no device initialised and no compile in its memory.  A run in a
child of it must show what a run in a new process shows; whatever a layer leaves behind in torch is put back.
"""
