"""What could not be observed, as notes for the report: a part of torch that is missing, an observer that failed.

They are log records that carry a sentence, so that whoever meets a trouble need not know who collects them.
"""

from __future__ import annotations

import contextlib
import logging

import torch

_NOTE = "inductoscope_note"
_LOGGER = "inductoscope.compiler"


def missing(log: logging.Logger, what: str, use: str) -> None:
    """Say that this torch lacks `what`, and what it would have been used for."""
    _tell(
        log, f"torch {torch.__version__} has no {what} ({use}); the report says less of what depends on it, or nothing"
    )


def changed(log: logging.Logger, what: str, use: str) -> None:
    """Say that this torch calls `what` with more than is known here, so that it is left alone."""
    note = f"torch {torch.__version__} passes more to {what} ({use}) than Inductoscope knows of"
    _tell(log, f"{note}; the report says less of it, or nothing")


def failed(log: logging.Logger, what: str, error: BaseException) -> None:
    """Say that observing `what` failed; to be called while `error` is handled."""
    said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    note = f"Observing {what} failed with torch {torch.__version__} ({said}), so that the report lacks it"
    _tell(log, note, error)


def silent(log: logging.Logger, what: str) -> None:
    """Say that torch told nothing of `what`, although it must have happened."""
    _tell(log, f"torch {torch.__version__} told nothing of {what} that Inductoscope understands; the report lacks them")


class Notes(contextlib.AbstractContextManager["Notes"]):
    """Collects the sentences that are told while the block runs."""

    def __init__(self) -> None:
        self._collector = _Collector()

    def __enter__(self) -> Notes:
        logging.getLogger(_LOGGER).addHandler(self._collector)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(_LOGGER).removeHandler(self._collector)

    def told(self) -> tuple[str, ...]:
        """Each sentence once, in their order."""
        return tuple(self._collector.notes)


def _tell(log: logging.Logger, note: str, error: BaseException | None = None) -> None:
    log.warning("%s", note, extra={_NOTE: f"{note}."}, exc_info=error)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.notes: dict[str, None] = {}

    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        note = getattr(record, _NOTE, None)
        if note is not None:
            self.notes[note] = None
