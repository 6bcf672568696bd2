"""Runs on another machine, reached by a command that somebody else provides (ssh, srun, docker exec, kubectl exec).

To the rest of the server such a run looks like any other: `command` gives the command line of a worker, which is a
local process that passes messages on.
"""

from inductoscope.server.remote.command import RunnerError, elsewhere, remote_command

__all__ = ["RunnerError", "elsewhere", "remote_command"]
