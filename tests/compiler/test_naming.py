"""Torch's names for variables and attributes, as the program would write them."""

import pytest

from inductoscope.protocol.torch_texts.naming import is_of_module, plain


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("L['x']", "x"),
        ("G['scale']", "scale"),
        ("L['self']._modules['layers']._modules['0']._parameters['weight']", "self.layers[0].weight"),
        ("L['self'].__dict__['_modules']['up']._parameters['weight']", "self.up.weight"),
        ("L['self'].__dict__['_buffers']['mask']", "self.mask"),
        ("L['self'].__dict__['_modules']", "self.__dict__['_modules']"),
        ("L['self'].__dict__['gain']", "self.__dict__['gain']"),
        ("L['x'].size()[0] <= 4", "x.size()[0] <= 4"),
    ],
)
def test_a_source_is_written_as_the_program_would(source: str, expected: str) -> None:
    assert plain(source) == expected


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("L['x']", False),
        ("L['self'].gain", False),
        ("L['self']._buffers['mask']", True),
        ("L['self'].__dict__['_parameters']['weight']", True),
    ],
)
def test_parameters_and_buffers_are_told_from_arguments(source: str, answer: bool) -> None:
    assert is_of_module(source) is answer
