"""What the simulated device notes, as sentences for people."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from inductoscope.compiler.simgpu.records import Note, Topic, sentences


def matmul(sizes: str, shown: str = "plain") -> Note:
    return Note(Topic.PADDING, f"Not aligned: matmul {sizes}. The {shown} form is shown.", subject=sizes)


def test_what_holds_of_several_matmuls_is_said_once() -> None:
    notes = [matmul("4x10x64"), Note(Topic.VALUES, "A value was guessed."), matmul("10x4x64"), matmul("4x10x64")]
    assert sentences(notes) == [
        "Not aligned: matmul 4x10x64, 10x4x64. The plain form is shown.",
        "A value was guessed.",
    ]


def test_different_outcomes_are_different_sentences() -> None:
    assert len(sentences([matmul("4x10x64"), matmul("511x511x511", "padded")])) == 2
