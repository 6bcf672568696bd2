import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductoscope.protocol.input_spec import (
    DTYPES,
    Argument,
    CallSpec,
    Container,
    DictSpec,
    Dim,
    InputSpecError,
    LiteralSpec,
    SequenceSpec,
    TensorSpec,
    ValueSpec,
    expand,
    find_comment,
    parse,
    render,
    tensor_text,
)


def _tensor(*sizes: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(dtype, tuple(Dim(size) for size in sizes))


def _values(text: str) -> list[ValueSpec]:
    (one,) = parse(text)
    return [argument.value for argument in one.arguments]


_literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
    st.text(),
    st.binary(),
).map(LiteralSpec)
_dims = st.builds(Dim, st.integers(0, 10**6), st.booleans())
_tensors = st.builds(TensorSpec, st.sampled_from(sorted(set(DTYPES.values()))), st.lists(_dims, max_size=4).map(tuple))
_any_value = st.recursive(
    st.one_of(_literals, _tensors),
    lambda inner: st.one_of(
        st.builds(SequenceSpec, st.sampled_from(Container), st.lists(inner, max_size=3).map(tuple)),
        st.builds(DictSpec, st.lists(st.tuples(_literals, inner), max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
_names = st.from_regex(r"\A[a-z_][a-z0-9_]{0,8}\Z").filter(lambda name: name not in ("inf", "nan"))


@st.composite
def _calls(draw: st.DrawFn) -> CallSpec:
    positional = draw(st.lists(_any_value, max_size=3))
    named = draw(st.dictionaries(_names, _any_value, min_size=0 if positional else 1, max_size=3))
    return CallSpec((*map(Argument, positional), *(Argument(value, name) for name, value in named.items())))


@given(st.lists(_calls(), min_size=1, max_size=3).map(tuple))
def test_rendered_text_reads_back_the_same(sets: tuple[CallSpec, ...]) -> None:
    assert parse(render(sets)) == sets


@given(st.text())
def test_any_text_gives_sets_or_an_error_inside_it(text: str) -> None:
    try:
        assert parse(text)
    except InputSpecError as error:
        lines = text.split("\n")
        assert error.line < len(lines)
        assert error.column <= len(lines[error.line])


def test_sets_are_separated_by_semicolons_and_names_are_optional() -> None:
    assert parse("f32[4, 128], mask=bool[4]; x=f32[8, 128]") == (
        CallSpec((Argument(_tensor(4, 128)), Argument(_tensor(4, dtype="bool"), "mask"))),
        CallSpec((Argument(_tensor(8, 128), "x"),)),
    )


@pytest.mark.parametrize(
    ("text", "dtype"), [("bf16[1]", "bfloat16"), ("long[1]", "int64"), ("torch.float8_e5m2[1]", "float8_e5m2")]
)
def test_dtypes_have_short_and_long_names(text: str, dtype: str) -> None:
    assert _values(text) == [_tensor(1, dtype=dtype)]


def test_a_tensor_without_dimensions_has_empty_brackets() -> None:
    assert _values("f64[]") == [_tensor(dtype="float64")]


def test_strings_may_hold_the_separators() -> None:
    assert _values(r"""'a;b, c=[', "it's", r'\d'""") == [
        LiteralSpec("a;b, c=["),
        LiteralSpec("it's"),
        LiteralSpec(r"\d"),
    ]


def test_numbers_and_named_constants() -> None:
    assert _values("-3, .5, 1e-3, 0x10, 1+2j, True, None, -inf") == [
        LiteralSpec(value) for value in (-3, 0.5, 1e-3, 16, 1 + 2j, True, None, -math.inf)
    ]


def test_parentheses_make_a_tuple_only_with_a_comma() -> None:
    assert _values("(f32[2])") == [_tensor(2)]
    assert _values("(f32[2],)") == [SequenceSpec(Container.TUPLE, (_tensor(2),))]
    assert _values("()") == [SequenceSpec(Container.TUPLE, ())]


def test_containers_nest_with_tensors_inside() -> None:
    assert _values("{'kv': (f32[2], [1, f32[3]])}") == [
        DictSpec(
            (
                (
                    LiteralSpec("kv"),
                    SequenceSpec(
                        Container.TUPLE,
                        (_tensor(2), SequenceSpec(Container.LIST, (LiteralSpec(1), _tensor(3)))),
                    ),
                ),
            )
        )
    ]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 0, "no inputs"),
        ("x=", 2, "value is missing"),
        ("[" * 5000, 50, "nested more than 50"),
        ("x=f32[9223372036854775808]", 6, "over the largest"),
        (f"x=f32[{'9' * 5000}]", 6, "no Python literal"),
        ("x=f32[1__2]", 6, "no Python literal"),
        (f"x={'9' * 400}+1.0", 406, "too large"),
        ("x=f33[4]", 2, "did you mean f32"),
        ("x=f32", 5, "f32[4, 128]"),
        ("x=f32[4, n]", 9, "whole number"),
        ("x=f32[-4]", 6, "whole number"),
        ("x=f32[4", 7, "']' is missing"),
        ("x=f32[4] y=f32[4]", 9, "expected ',' or ';'"),
        ("x=1, 2", 5, "without a name"),
        ("x=1, x=2", 5, "given twice"),
        ("x='abc", 2, "not closed"),
        ("x=f32[4] @", 9, "no meaning"),
        ("x=1.2.3", 2, "no Python literal"),
    ],
)
def test_errors_say_what_and_where(text: str, column: int, words: str) -> None:
    with pytest.raises(InputSpecError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == (0, column)


def test_a_star_asks_for_the_doubled_size_of_the_whole_batch() -> None:
    sets = parse("f32[4*, 8], (bool[4*], i64[3*])")
    assert render(expand(sets)[1:]) == "f32[8, 8], (bool[8], i64[3]); f32[4, 8], (bool[4], i64[6])"


def test_sets_without_a_star_stay_as_they_are() -> None:
    sets = parse("f32[4], 1; f32[8], True")
    assert expand(sets) == sets


def test_no_comment_is_found_among_others() -> None:
    assert find_comment(["# about inductoscope: nothing", "# plain"]) is None


def test_each_comment_line_is_a_set_unless_the_one_before_goes_on() -> None:
    comment = find_comment(
        [
            "# The projection.",
            "# inductoscope: x=f32[4],",
            "#     y=f32[4, ",
            "#  8]",
            "# inductoscope: f32[5], 2",
            "# z",
        ]
    )
    assert comment is not None
    assert render(parse(comment.text)) == "x=float32[4], y=float32[4, 8]; f32[5], 2".replace("float32", "f32")


def test_an_error_is_placed_in_its_comment_line() -> None:
    comment = find_comment(["# text", "  # inductoscope: x=f32[4],", "  #   y=f33[4]"])
    assert comment is not None
    with pytest.raises(InputSpecError) as caught:
        parse(comment.text)
    assert comment.place(caught.value) == (2, 8)


def test_live_tensors_are_described_in_the_same_language() -> None:
    assert tensor_text("torch.bfloat16", (4, "s0")) == "bf16[4, s0]"
    assert tensor_text("torch.float8_e4m3fnuz", ()) == "float8_e4m3fnuz[]"
