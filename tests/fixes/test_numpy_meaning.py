"""What is written for NumPy means the same: every form is run with both libraries, or it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from inductoscope.server.features.fixes.model import Proposal
from support.fixing import apply, finding_at, offered

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

FUNCTIONS = """
    abs absolute exp log log2 log10 log1p expm1 sqrt sin cos tan sinh cosh tanh floor ceil round sign square
    isnan isinf isfinite logical_not zeros_like ones_like arctan arcsin arccos transpose linalg.norm sort flip
    maximum minimum logical_and logical_or dot matmul outer where clip cumsum full_like stack concatenate roll
    any all sum prod mean max min argmax argmin count_nonzero power arctan2 array asarray median
""".split()  # noqa: SIM905  (a table that people read)
ARGUMENTS = (
    *(
        "X.numpy()",
        "np.isnan(X.numpy()), X.numpy(), 0.0",
        "2.0",
        "-1",
        "X.numpy(), X.numpy()",
        "X.numpy(), 0.4",
        "0.4, X.numpy()",
        "X.numpy(), 1",
    ),
    *("X.numpy(), 0", "X.numpy(), axis=0", "X.numpy(), axis=1", "X.numpy(), axis=1, keepdims=True"),
    *("X.numpy(), keepdims=True", "X.numpy(), 0.2, 0.6", "X.numpy(), 1, 0", "[X.numpy(), X.numpy()]", "[1, 2]"),
    *("[X.numpy(), X.numpy()], axis=1", "X.numpy() > 0.5, X.numpy(), 0.0", "X.numpy(), a_min=0.2, a_max=0.6"),
    *("names", "X.numpy(), (1, 0)", "X.numpy(), X.numpy(), X.numpy()"),
)


NONE = {"sort", "flip", "dot", "outer", "roll", "array", "asarray", "median"}
"""Functions of which no form above is known to mean the same."""


def value(text: str, whole: str) -> object:
    scope: dict[str, object] = {}
    exec(text, scope)
    return scope["f"](torch.tensor([[0.25, 0.75], [0.5, 0.125]]), [1, 2])  # type: ignore[operator]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_torch_is_given_means_the_same(function: str) -> None:
    compared = 0
    for form in [f"np.{function}({given})" for given in ARGUMENTS] + [
        f"np.exp(X.numpy()).{function}({given})" for given in ("", "0", "axis=1", "axis=1, keepdims=True", "1, None")
    ]:
        text = f"import numpy as np\nimport torch\n\ndef f(X, names):\n    return 1 * {form}\n"
        found: list[Proposal] = [one for _, one in offered(text, finding_at(text, form)) if one.disabled is None]
        try:
            expected = value(text, form)
        except (TypeError, ValueError, AttributeError, np.exceptions.AxisError):
            continue  # NumPy has no such form
        for proposal in found:
            given = value(apply(text, proposal.edits), form)
            assert isinstance(given, torch.Tensor), (form, apply(text, proposal.edits))
            assert given.numpy() == pytest.approx(expected, rel=1e-4, nan_ok=True), form
            compared += 1
    assert (compared == 0) is (function in NONE)
