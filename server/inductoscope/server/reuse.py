"""Where facts about lowered graphs are kept, so that a run lowers only graphs that no run before it had.

The server only names the folder: what lies there is written and read by workers.
"""

from __future__ import annotations

from pathlib import Path

import platformdirs

from inductoscope.protocol.messages import Reuse


def order() -> Reuse:
    """What to tell a worker: this machine's user has one such folder."""
    return Reuse(str(Path(platformdirs.user_cache_dir("inductoscope")) / "graphs"))
