"""First file of a worker: `PYTHON bootstrap.py READ_FD WRITE_FD NAMESPACE_PART...`.

One and the same descriptor for both is a socket, and the process is a warm one that workers are forked from.

It is started by its path in the user's interpreter, where `inductoscope` is not installed, so it makes the namespace
package from the folders it is given.  Before anything else runs, it takes the two descriptors of the channel away from
whatever the program may do, and turns standard output, which programs print to, into standard error.

Unlike all other files this one has to be readable by Pythons down to 3.6, so that they can say what is wrong in a
sentence: no future annotations, nothing newer than f-strings.
"""

import os
import sys
from pathlib import Path

OLDEST = (3, 10)
PROTOCOL = 1  # messages.PROTOCOL, which an old Python cannot import


def main(argv: "list[str]") -> None:
    """Run the worker; returns only when the interpreter is too old."""
    channel = [take_away(int(descriptor)) for descriptor in dict.fromkeys(argv[1:3])]
    read_fd, write_fd = channel[0], channel[-1]
    redirect_standard_streams()
    leave_folder(Path(__file__).resolve().parent)
    if sys.version_info < OLDEST:
        refuse_old_python(write_fd)
        return
    make_namespace(argv[3:])
    from inductoscope.compiler import worker

    worker.main(read_fd, write_fd)


def take_away(descriptor: int) -> int:
    """Move a descriptor to a high number that no program started from here inherits."""
    import fcntl
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    roomy = limit == resource.RLIM_INFINITY or limit > 1100
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 1000 if roomy else max(3, limit - 16))
    os.close(descriptor)
    return moved


def redirect_standard_streams() -> None:
    """Let output go where errors go, and let nothing be read."""
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def leave_folder(folder: Path) -> None:
    """Take the folder of this file, which Python put on the path, off it: its modules must not shadow the user's."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]


def make_namespace(parts: "list[str]") -> None:
    """Make `inductoscope` importable from the folders `parts`, whatever is installed here under that name."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.ModuleSpec("inductoscope", None, is_package=True)
    spec.submodule_search_locations = parts
    sys.modules["inductoscope"] = importlib.util.module_from_spec(spec)


def refuse_old_python(write_fd: int) -> None:
    """Send a `Hello` that says that this Python is too old; by hand, since the protocol package needs a newer one."""
    import json
    import struct

    version, needed = (".".join(map(str, numbers)) for numbers in (sys.version_info[:3], OLDEST))
    problem = (
        f"{sys.executable} is Python {version}; Inductoscope needs Python {needed} or newer, "
        "so select another interpreter"
    )
    hello = {
        "protocol": PROTOCOL,
        "python": version,
        "executable": sys.executable,
        "pid": os.getpid(),
        "problem": problem,
    }
    body = json.dumps({"type": "Hello", "body": hello}).encode("utf-8")
    os.write(write_fd, struct.pack(">I", len(body)) + body)


if __name__ == "__main__":
    main(sys.argv)
