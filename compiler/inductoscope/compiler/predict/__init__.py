"""Predicted times: a model's estimate with its range, never a measurement, and labelled as such.

Generated kernels and library calls have models of their own.  All constants were fitted to times taken on one H200
(`benchmarks/fidelity.py real`; stored in `tests/data`); other devices scale by their own figures, and their range is
wider.  Knows nothing of how kernels are generated or assembled.
"""

from inductoscope.compiler.predict.generated import generated_kernel, random_numbers
from inductoscope.compiler.predict.library import library_call
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Kernel, KernelLanguage, Predicted


def predict(kernel: Kernel, device: Device) -> Predicted | None:
    """The time of one launch of `kernel` on `device`, None where nothing is known to predict it from."""
    if kernel.language is KernelLanguage.EXTERN:
        return random_numbers(kernel, device) or library_call(kernel, device)
    return generated_kernel(kernel, device)


__all__ = ["predict"]
