"""Python imports this at its start, since its folder is on PYTHONPATH under `inductoscope run`.

It takes its folder off the path, lets the `sitecustomize` of the user's own run that it stands before, and waits for
torch: a finder on `sys.meta_path` that looks at names until torch has been imported, and is gone then.  Readable by
Pythons down to 3.6, which a program may start although they have no torch.
"""

import os
import sys
from importlib import abc, machinery, util

TYPE_CHECKING = False  # `typing` takes a while to import
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib takes a while to import
_PACKAGE = "_inductoscope_recorder"


def _leave_path() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100


def _run_the_users() -> None:
    """As `site` would have done, had this folder not been there; errors are reported by `site`."""
    spec = machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


class _Waiting(abc.MetaPathFinder):
    """Waits for torch."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Let the others find torch, and be told when it is imported."""
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec.loader)
        return spec


class _Telling(abc.Loader):
    """Loads a module the way that its own loader does, puts that back, and begins to record."""

    def __init__(self, loader: "Any") -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "Any") -> "Any":
        """See `importlib.abc.Loader`."""
        return self._loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        """See `importlib.abc.Loader`."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _record(module)


def _record(torch: "Any") -> None:
    """Never an error of the program's: what goes wrong here is one line, and nothing is recorded."""
    try:
        folder = os.path.dirname(_HERE)  # noqa: PTH120
        spec = util.spec_from_file_location(  # type: Any
            _PACKAGE,
            os.path.join(folder, "__init__.py"),  # noqa: PTH118
            submodule_search_locations=[folder],
        )
        package = util.module_from_spec(spec)
        sys.modules[_PACKAGE] = package
        spec.loader.exec_module(package)
        package.start(torch)
    except Exception as error:
        sys.stderr.write("inductoscope: nothing is recorded in this process: {!r}\n".format(error))  # noqa: UP032


_leave_path()
if sys.version_info >= (3, 10) and os.environ.get("INDUCTOSCOPE_RECORD"):
    sys.meta_path.insert(0, _Waiting())
_run_the_users()
