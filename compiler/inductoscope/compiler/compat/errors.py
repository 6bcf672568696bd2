"""Which exceptions come from the compiler rather than from the program.

`torch._dynamo.exc.TorchDynamoException` is the base of everything that Dynamo raises, and of what backends and Inductor
raise in a compilation; `FailOnRecompileLimitHit` stands beside it.  `ConstraintViolationError` and the errors of fake
tensors come up as they are in some paths.  All of them under these names in torch 2.11 to 2.15.
"""

from __future__ import annotations

from torch._dynamo import exc
from torch._subclasses import fake_tensor
from torch.fx.experimental import symbolic_shapes

_OF_THE_COMPILER = (
    exc.TorchDynamoException,
    exc.FailOnRecompileLimitHit,
    symbolic_shapes.ConstraintViolationError,
    symbolic_shapes.GuardOnDataDependentSymNode,
    fake_tensor.UnsupportedFakeTensorException,
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.DataDependentOutputException,
    fake_tensor.UnsupportedOperatorException,
)


def is_compile_error(error: BaseException) -> bool:
    """Whether compiling failed, as against the program itself.

    An operator's own IndexError or AssertionError comes up as it is; Dynamo marks what passes through it with the id of
    the compilation (`get_exc_message` in torch/_dynamo/exc.py, 2.4 to 2.15).
    """
    return isinstance(error, _OF_THE_COMPILER) or getattr(error, "compile_id", None) is not None
