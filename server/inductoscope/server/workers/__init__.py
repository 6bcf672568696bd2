"""Worker processes: start them, talk to them, limit them, end them, and say in a sentence how they ended.

Knows the worker protocol and the operating system; knows neither LSP nor torch.
"""

from inductoscope.server.workers.command import WorkerCommand, bootstrap_command
from inductoscope.server.workers.pool import Spare, WorkerPool
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest

__all__ = ["OnEvent", "RunOutcome", "RunRequest", "Spare", "WorkerCommand", "WorkerPool", "bootstrap_command"]
