"""Which part of a kernel's source a hover shows."""

from inductoscope.protocol.report import Kernel, KernelLanguage, LineMapping, Phase
from inductoscope.server.features import hover

HEAD = ["import triton", "@triton_heuristics.pointwise(size_hints={})", "@triton.jit", "def kernel(x):"]


def shown(body: list[str], *lines: int) -> list[str]:
    """The source as the hover of model line 7 shows it; `lines` of the source were made from it."""
    mapping = tuple(LineMapping(line, "/model.py", 7) for line in lines)
    source = "\n".join([*HEAD, *body])
    kernel = Kernel("kernel", KernelLanguage.TRITON, Phase.FORWARD, "0/0", source, (), line_map=mapping)
    return hover._source_block(kernel, "/model.py", 7).text.split("\n")


def test_the_function_is_shown_without_what_launches_it():
    text = shown(["    y = x + 1", "    z = y * 2"], 6)
    assert text == [
        "# … 2 lines above",
        "@triton.jit",
        "def kernel(x):",
        "    y = x + 1",
        "    z = y * 2  # <- line 7",
    ]


def test_a_long_function_is_shown_from_the_line_in_question():
    text = shown([f"    line{n}" for n in range(200)], 100)
    assert text[0] == "# … 96 lines above"
    assert "    line95  # <- line 7" in text
    assert text[-1] == "# … 48 lines below"


def test_the_end_of_a_long_function_fills_the_hover():
    text = shown([f"    line{n}" for n in range(200)], 203)
    assert text[-1] == "    line199"
    assert len(text) == hover.SOURCE_LINES + 1


def test_a_source_without_a_function_is_shown_from_its_first_line():
    kernel = Kernel("kernel", KernelLanguage.CPP, Phase.FORWARD, "0/0", "one\ntwo\n", ())
    assert hover._source_block(kernel, "/model.py", 7).text == "one\ntwo"
