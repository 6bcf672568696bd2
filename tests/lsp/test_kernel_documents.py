"""Documents of assembled kernels: one address each, back to the program, and told of only when they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inductoscope.protocol.kernel_store import KernelStore
from inductoscope.protocol.report import (
    Artifact,
    Assembler,
    ConfigFact,
    Kernel,
    KernelLanguage,
    LineMapping,
    Phase,
    Place,
    Remark,
    Resources,
)
from inductoscope.server.extensions import LinesResult, ProgramLine
from inductoscope.server.features import artifacts, explore, hover, kernel_documents
from inductoscope.server.features.artifacts import Address, Spot
from inductoscope.server.features.markup import Markup, write
from support.session import Harness

PATH = "/w/model.py"
MODEL = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x):  # <forward>
            return torch.relu(x)  # <relu>


    def get_inputs():
        return [torch.ones(4, 8)]
"""
NAME = "triton_poi_fused_relu_0"
SOURCE = f"@triton.jit\ndef {NAME}(x):\n    y = max(x, 0)\n"
PTX = """\
\t.file\t1 "KERNEL.py"
.visible .entry KERNEL(
{
\t.loc\t1 3 8                           // KERNEL.py:3:8
\tmax.f32 \t%f2, %f1, 0f00000000;
\tret;
}
"""
KEY = "ab" * 32
ASSEMBLER = Assembler("3.7.1", "12.8", None)
STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")


def config(block: int, likely: bool, mark: str = "a") -> ConfigFact:
    made = tuple(Artifact(stage, f"{mark}{stage}", 10) for stage in STAGES)
    remarks = (Remark("vectorization fails vec = 1", 3), Remark("of a library", None))
    return ConfigFact(
        {"XBLOCK": block}, 4, 1, 16 if likely else 32, 0, 0, 1.0, None, None, likely, None, None, made, remarks
    )


def kernel(name: str = NAME, graph: str = "0/0", source: str = SOURCE, mark: str = "a") -> Kernel:
    return Kernel(
        name,
        KernelLanguage.TRITON,
        Phase.FORWARD,
        graph,
        source,
        (Place(PATH, 7),),
        line_map=(LineMapping(3, PATH, 7),),
        resources=Resources(16, 0, 0, 1.0),
        configs=(config(1024, True, mark), config(512, False, mark)),
        stored=KEY,
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelStore:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = KernelStore(tmp_path / "inductoscope" / "kernels")
    kept.put(KEY, {}, {(0, "ptx"): PTX.encode(), (1, "ptx"): b"// the other", (0, "cubin"): b"no cubin"})
    return kept


async def checked(*kernels: Kernel, assembler: Assembler | None = ASSEMBLER) -> Harness:
    h = Harness()
    await h.configure(device="sim:H200")
    h.open(MODEL)
    (await h.runner.next()).finish(kernels=kernels, assembler=assembler)
    await h.settled()
    return h


def address(name: str) -> Address:
    return Address(PATH, "Model.forward", name)


def read(h: Harness, name: str) -> str:
    return artifacts.content(h.session.snapshot(), address(name))


async def test_every_artifact_has_an_address_of_its_own(store: KernelStore) -> None:
    other = kernel(graph="1/0", source=SOURCE.replace("0)", "1)"))
    h = await checked(kernel(), kernel(graph="0/1"), other)
    (target,) = explore.explore(h.session.snapshot(), PATH).targets
    uris = [document.uri for document in target.documents]
    assert len(uris) == len(set(uris)) == 2 * (1 + 2 * len(kernel_documents.texts.STAGES[:5]))
    names = {uri.rpartition("/")[2] for uri in uris}
    assert {f"{NAME}.py", f"{NAME}.ptx", f"{NAME}.sass", f"{NAME}.XBLOCK512-w4-s1.ptx"} <= names
    assert {f"{NAME}%401_0.py", f"{NAME}%401_0.ptx"} <= names
    for uri in uris:
        found = artifacts.parse(uri)
        assert found is not None
        assert found.uri == uri


async def test_texts_carry_the_name_of_the_kernel(store: KernelStore) -> None:
    h = await checked(kernel())
    assert f".entry {NAME}(" in read(h, f"{NAME}.ptx")
    assert read(h, f"{NAME}.XBLOCK512-w4-s1.ptx") == "// the other"
    assert read(h, f"{NAME}.py") == SOURCE


async def test_what_is_not_there_is_a_sentence(store: KernelStore) -> None:
    h = await checked(kernel())
    assert "no longer kept" in read(h, f"{NAME}.ttir")
    assert "no nvdisasm" in read(h, f"{NAME}.sass")
    assert "of this name any more" in read(h, "triton_poi_fused_7.ptx")
    broken = await checked(kernel(), assembler=Assembler("3.7.1", "12.8", "/bin/false"))
    assert "ended with status 1" in read(broken, f"{NAME}.sass")
    unkept = await checked(replace(kernel(), stored=None))
    assert "could not be kept" in read(unkept, f"{NAME}.ptx")


async def test_an_instruction_leads_to_the_program_and_to_the_kernel(store: KernelStore) -> None:
    h = await checked(kernel())
    snapshot = h.session.snapshot()
    source = address(f"{NAME}.py").uri
    assert artifacts.origins(snapshot, address(f"{NAME}.ptx"), 5) == (Spot(None, PATH, 7), Spot(source, None, 3))
    assert artifacts.origins(snapshot, address(f"{NAME}.py"), 3) == (Spot(None, PATH, 7),)
    assert artifacts.origins(snapshot, address(f"{NAME}.ptx"), 1) == ()
    assert artifacts.origins(snapshot, address("nothing.ptx"), 1) == ()
    assert artifacts.origins(snapshot, Address(PATH, "Other", f"{NAME}.ptx"), 5) == ()


async def test_lines_follow_the_text_on_screen(store: KernelStore) -> None:
    h = await checked(kernel())
    h.edit(MODEL.replace("    import torch\n", "    # a comment\n    import torch\n", 1))
    found = explore.lines(h.session.snapshot(), address(f"{NAME}.ptx"))
    assert found.model["3"] == (ProgramLine(PATH, 8),)
    assert found.kernel == {"5": 3, "6": 3}
    assert explore.lines(h.session.snapshot(), address("nothing.ptx")) == LinesResult()


async def test_a_run_that_changes_nothing_of_a_text_is_no_new_revision(store: KernelStore) -> None:
    h = await checked(kernel())
    ptx, report = address(f"{NAME}.ptx"), address(artifacts.REPORT)
    before = [artifacts.revision(h.session.snapshot(), one) for one in (ptx, report)]
    h.session.check(PATH)
    (await h.runner.next()).finish(kernels=(kernel(),), assembler=None)
    await h.settled()
    same = [artifacts.revision(h.session.snapshot(), one) for one in (ptx, report)]
    assert same[0] == before[0]
    assert same[1] != before[1]
    h.session.check(PATH)
    (await h.runner.next()).finish(kernels=(kernel(mark="b"),), assembler=None)
    await h.settled()
    assert artifacts.revision(h.session.snapshot(), ptx) != before[0]


async def test_hover_tells_candidates_remarks_and_documents(store: KernelStore) -> None:
    h = await checked(kernel())
    card = hover.hover(h.session.snapshot(), PATH, 7)
    assert card is not None
    text = write(card.blocks, Markup.PLAIN)
    assert "one of 2 configurations that a card would time, with 16 to 32 registers" in text
    assert "Triton remarks: vectorization fails vec = 1" in text
    assert "of a library" not in text
    for stage in ("source", "ttir", "ttgir", "llir", "ptx", "sass"):
        assert f"{stage}: inductoscope-artifact:/" in text
    assert f"[ptx]({address(f'{NAME}.ptx').uri})" in write(card.blocks, Markup.MARKDOWN)


async def test_the_line_that_somebody_looks_at_comes_first(store: KernelStore) -> None:
    h = await checked(kernel())
    h.session.look(PATH, 7)
    h.session.check(PATH)
    run = await h.runner.next()
    how = run.request.assembling
    assert (how.file, how.line) == (PATH, 7)
    assert how.store == str(store.folder)
    assert how.processes >= 1
    run.finish()
    await h.settled()
