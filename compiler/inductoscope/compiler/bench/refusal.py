"""Why no honest figure can be given: a sentence for the user.  Must not know how anything is measured."""

from __future__ import annotations

import torch

_LOST_GPU = (
    "After that the GPU is of no more use to the process. Run the program alone with CUDA_LAUNCH_BLOCKING=1 to see the "
    "line, or under compute-sanitizer to see the access"
)


class RefusedError(Exception):
    """Measuring makes no sense or failed; the message is one or two sentences for the user."""


def raised(what: str, error: BaseException) -> RefusedError:
    """The refusal for an exception that `what` (`the eager program`) raised; a refusal stays as it is."""
    if isinstance(error, RefusedError):
        return error
    text = str(error)
    subject = what[0].upper() + what[1:]
    if isinstance(error, torch.OutOfMemoryError):
        return RefusedError(
            f"The GPU's memory ran out in {what} ({_first(text)}). Use smaller inputs, or free the memory that other "
            "programs hold."
        )
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in text:
        return RefusedError(f"This machine's memory ran out in {what} ({_first(text)}). Use smaller inputs.")
    if "illegal memory access" in text or "misaligned address" in text:
        return RefusedError(f"A kernel of {what} touched memory that is not its own ({_first(text)}). {_LOST_GPU}.")
    if "device-side assert" in text:
        return RefusedError(
            f"A kernel of {what} found a value out of range, such as an index beyond a table ({_first(text)}). "
            f"{_LOST_GPU}."
        )
    return RefusedError(f"{subject} raised {in_short(error)}.")


def in_short(error: BaseException) -> str:
    """The type of an exception and the first line of its message, with the next one where a line ends in a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    short = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return f"{type(error).__name__}: {short.rstrip('.')}"


def _first(text: str) -> str:
    return next((line.strip().rstrip(".") for line in text.splitlines() if line.strip()), "no further word")
