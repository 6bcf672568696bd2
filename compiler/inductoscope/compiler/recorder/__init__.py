"""The recorder of `inductoscope run`: writes down what torch.compile does in a program that somebody else started.

It runs inside of the user's program, in whatever process that starts, so it is the standard library only, does nothing
before torch is imported and nothing per step, and an error of its own is kept away from the program.  `site/` is put on
PYTHONPATH; its `sitecustomize` loads this package under a name of its own, since `inductoscope` need not be installed
there.  Hence the relative imports.
"""

from __future__ import annotations

import os
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

FOLDER_VARIABLE = "INDUCTOSCOPE_RECORD"
"""Environment variable with the folder that records are written to."""


def start(torch: ModuleType) -> None:
    """Begin to record; called once torch is imported."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    from .signatures import describe
    from .writer import Writer

    writer = Writer(Path(folder), str(getattr(torch, "__version__", "")))
    _torch_parts().attach(writer, describe)


def _torch_parts() -> ModuleType:
    """`compat/live_trace.py`, which alone knows private parts of torch, without the package that it is in."""
    name = f"{__name__}.live_trace"
    path = Path(__file__).parent.parent / "compat" / "live_trace.py"
    spec = util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
