"""Keys of compile caches compared, in words, and remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inductoscope.compiler.lower import cache_keys
from inductoscope.compiler.lower.cache_keys import Known

PARTS = {
    "graph": "abc",
    "input 0": "float32[8, 16]",
    "input 1": "float32[16, 4] that wants gradients",
    "fx_kwargs.static_input_idxs": "(1)",
    "inductor_config.max_autotune": "False",
    "inductor_config.epilogue_fusion": "True",
    "autograd_config.view_replay": "False",
    "grad_enabled": "True",
    "torch_version": "2.13",
}
KEY = Known("fx_graph", False, "0/0", "f1", PARTS)


def changed(**parts: str | None) -> dict[str, str]:
    renamed = {name.replace("__", ".").replace("input_", "input "): value for name, value in parts.items()}
    return {name: value for name, value in {**PARTS, **renamed}.items() if value is not None}


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (changed(graph="xyz"), ["the graph's code differs"]),
        (changed(input_0="float32[9, 16]"), ["inputs float32[9, 16] instead of float32[8, 16]"]),
        (changed(input_2="s0"), ["further inputs: s0"]),
        (changed(input_1=None), ["inputs that are gone: float32[16, 4] that wants gradients"]),
        (
            changed(input_0=PARTS["input 1"], input_1=PARTS["input 0"]),
            ["the inputs stand in another order"],
        ),
        (changed(grad_enabled="False"), ["grad enabled is False instead of True"]),
        (
            changed(inductor_config__max_autotune="True"),
            ["torch._inductor.config.max_autotune is True instead of False"],
        ),
        (
            changed(autograd_config__view_replay="True"),
            ["torch._functorch.config.view_replay is True instead of False"],
        ),
        (
            changed(autograd_config__view_replay=None),
            ["torch._functorch.config.view_replay is absent instead of False"],
        ),
        (changed(torch_version="2.14"), ["another torch"]),
        (changed(), ["the graph's constants or attributes differ"]),
    ],
)
def test_each_difference_is_a_phrase(parts: dict[str, str], told: list[str]):
    assert cache_keys.differences(parts, PARTS) == told


def test_a_size_that_becomes_symbolic_is_told_without_what_it_moves():
    moved = changed(input_0="s0", input_1="float32[s0, 16]", input_2=PARTS["input 1"])
    moved["fx_kwargs.static_input_idxs"] = "(2)"
    assert cache_keys.differences(moved, PARTS) == ["inputs s0, float32[s0, 16] instead of float32[8, 16]"]


def test_the_nearest_key_is_that_of_the_same_function_with_the_fewest_differences():
    far = replace(KEY, graph="0/0", parts=changed(graph="other", grad_enabled="False"))
    near = replace(KEY, graph="0/1", parts=changed(grad_enabled="False"))
    near_too = replace(near, graph="0/2")
    elsewhere = replace(KEY, graph="1/0")
    backward = replace(KEY, backward=True)
    now = replace(KEY, graph="0/3")
    assert cache_keys.nearest(now, [far, near, near_too, elsewhere, backward]) is near_too
    assert cache_keys.nearest(now, [elsewhere, backward]) is None


def test_a_long_list_of_differences_is_cut():
    parts = {**PARTS, **{f"setting {n}": "1" for n in range(9)}}
    text = cache_keys.sentence(replace(KEY, parts=parts), KEY, "the run before")
    assert text.startswith("compared with the run before: setting 0 is 1 instead of absent; ")
    assert text.endswith("setting 5 is 1 instead of absent; and 3 more")


def test_keys_are_remembered_with_their_settings_written_once():
    keys = (
        KEY,
        replace(KEY, backward=True, key="f2"),
        replace(KEY, parts=changed(inductor_config__max_autotune="True")),
    )
    text = cache_keys.remembered(keys)
    assert cache_keys.recalled(text) == keys
    assert text.count("epilogue_fusion") == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"settings": {}, "keys": [{"cache": "fx_graph"}]}'])
def test_what_cannot_be_read_is_forgotten(text: str):
    assert cache_keys.recalled(text) == ()
