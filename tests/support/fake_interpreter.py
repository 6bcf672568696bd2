"""Stands for the user's interpreter and plays a script as the worker: `[sys.executable, fake_interpreter.py, FILE]`.

FILE holds the steps of a `fake_worker.Script`.  The server adds its own arguments: flags, the bootstrap's path, the two
descriptors, the namespace's folders.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.fake_worker import Script, play


def settings(script: Script, folder: Path) -> list[str]:
    """The setting `interpreter` that plays `script`."""
    file = folder / "worker-script.json"
    file.write_text(json.dumps(script.steps))
    return [sys.executable, __file__, str(file)]


if __name__ == "__main__":
    script, arguments = sys.argv[1], sys.argv[2:]
    bootstrap = next(number for number, word in enumerate(arguments) if word.endswith("bootstrap.py"))
    play(int(arguments[bootstrap + 1]), int(arguments[bootstrap + 2]), json.loads(Path(script).read_text()))
