"""Whose fault an error inside Inductor is."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from inductoscope.compiler.compat import fx
from inductoscope.compiler.lower.errors import is_ours


def raised(function, *args, **kwargs) -> Exception:
    with pytest.raises(TypeError) as caught:
        function(*args, **kwargs)
    return caught.value


def test_a_hook_that_cannot_take_what_torch_passes_is_our_defect():
    hook = fx.freezing(lambda graph: None)(lambda module: module)
    assert is_ours(raised(hook))


def test_a_function_of_the_program_that_is_called_wrongly_is_not():
    def outer():
        def inner(x):
            return x

        return inner

    assert not is_ours(raised(outer(), 1, extra=2))
