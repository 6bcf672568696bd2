"""A part of torch that is missing, or an observer that fails, is a note in the report."""

from __future__ import annotations

import contextlib
import logging
import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.compat.dynamo import graph_breaks  # noqa: E402
from inductoscope.compiler.compat.dynamo_guards import compiled_guards  # noqa: E402
from inductoscope.compiler.compat.dynamo_trace import harmless  # noqa: E402
from inductoscope.compiler.compat.inductor import Point, replaced  # noqa: E402
from inductoscope.compiler.compat.troubles import Notes  # noqa: E402

ABSENT = Point("torch._dynamo.guards", "NoSuchManager.build", "the guards of a version")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that stands for one of torch."""
    module = ModuleType("pretended_torch_module")
    module.build = lambda code: f"built {code}"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_a_missing_point_is_noted_once_with_its_use() -> None:
    with Notes() as notes:
        for _ in range(2):
            with replaced(ABSENT, lambda original: original):
                pass
    (note,) = notes.told()
    assert "torch._dynamo.guards.NoSuchManager.build" in note
    assert "the guards of a version" in note
    assert torch.__version__ in note


def test_a_point_that_some_version_lacks_is_not_noted() -> None:
    with Notes() as notes, replaced(Point("torch", "no_such_function", "a detail", required=False), lambda one: one):
        pass
    assert notes.told() == ()


def test_a_point_without_a_parameter_that_is_read_is_left_alone_and_noted(library: ModuleType) -> None:
    point = Point(library.__name__, "build", "what is built", parameters=("f_code",))
    with Notes() as notes, replaced(point, lambda original: lambda code: "replaced"):
        assert library.build("it") == "built it"
    (note,) = notes.told()
    assert "parameter f_code of pretended_torch_module.build" in note
    assert not point.exists()


def test_a_point_with_its_parameters_is_replaced_for_the_block_only(library: ModuleType) -> None:
    point = Point(library.__name__, "build", "what is built", parameters=("code",))
    with Notes() as notes, replaced(point, lambda original: lambda code: "replaced"):
        assert library.build("it") == "replaced"
    assert library.build("it") == "built it"
    assert notes.told() == ()


def test_a_point_that_takes_more_than_the_replacement_is_left_alone_and_noted(library: ModuleType) -> None:
    library.build = lambda code, *, extra=None: f"built {code} with {extra}"
    point = Point(library.__name__, "build", "what is built")
    with Notes() as notes, replaced(point, lambda original: lambda code: "replaced"):
        assert library.build("it", extra=1) == "built it with 1"
    (note,) = notes.told()
    assert "passes more to pretended_torch_module.build" in note
    with Notes() as notes, replaced(point, lambda original: lambda code, **more: "replaced"):
        assert library.build("it", extra=1) == "replaced"
    assert notes.told() == ()


def test_two_can_watch_the_same_points() -> None:
    breaks: list[object] = []
    guards: list[object] = []
    with Notes() as notes, contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(graph_breaks(breaks.append))
            stack.enter_context(compiled_guards(guards.append))
    assert notes.told() == ()


def test_an_observer_that_fails_is_noted_and_the_program_goes_on() -> None:
    with Notes() as notes:
        for _ in range(3):
            with harmless("a graph break"):
                raise KeyError("exc")
    (note,) = notes.told()
    assert "Observing a graph break failed" in note
    assert "KeyError: 'exc'" in note


def test_notes_are_not_collected_outside_of_the_block() -> None:
    notes = Notes()
    with contextlib.suppress(RuntimeError), notes:
        raise RuntimeError
    with harmless("something"):
        raise ValueError("later")
    assert notes.told() == ()
    assert not logging.getLogger("inductoscope.compiler").handlers
