"""Structured traces of torch.compile, from runs of any program anywhere, read as facts on lines of source.

`lines` finds the records of a file and `records` their envelopes; `kinds` says which record means what to `process`,
which gathers what one process told.  `reports` makes of it the report that every surface shows, `views` what is only
seen over a whole run.  Imports no torch, and needs none that has written a trace.
"""
