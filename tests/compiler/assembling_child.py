"""Child process of `test_assembling`: assembles small kernels for a simulated H200 and prints what came of it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from inductoscope.compiler import assembling, simgpu
from inductoscope.compiler.assembling.maker import Maker
from inductoscope.compiler.teller import Teller
from inductoscope.protocol import codec, devices
from inductoscope.protocol.kernel_store import KernelStore
from inductoscope.protocol.messages import Assembling, Message, RungDone
from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Place, Rung, Status, TargetReport

DEVICE = devices.find("H200")

SOURCE = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

BEFORE

@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'},
                 'device': DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90, major=9,
                                            regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
                                            max_threads_per_block=1024, warp_size=32),
                 'constants': {}, 'native_matmul': False,
                 'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}]},
    inductor_meta={'kernel_name': 'NAME', 'mutated_arg_names': [], 'num_load': 1, 'num_reduction': 0},
    min_elem_per_thread=0
)
@triton.jit
def NAME(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    BODY
    tl.store(out_ptr0 + xindex, tmp1, xmask)
"""


def kernel(
    name: str, before: str = "", body: str = "tmp1 = tmp0 + 1", phase: Phase = Phase.FORWARD, line: int = 1
) -> Kernel:
    """A pointwise kernel with `before` at the top of its module."""
    source = SOURCE.replace("NAME", name).replace("BEFORE", before).replace("BODY", body)
    return Kernel(name, KernelLanguage.TRITON, phase, "0/0", source, (Place("model.py", line),))


def report(*kernels: Kernel) -> TargetReport:
    return TargetReport("model.py", "f", 1, DEVICE.text, Rung.LOWER, Status.COMPILED, kernels=kernels)


def assemble(kernels: list[Kernel], how: Assembling) -> tuple[TargetReport, list[Message]]:
    messages: list[Message] = []
    done = assembling.assembled(report(*kernels), DEVICE, Teller(1, messages.append), how)
    return done, messages


def hostile() -> dict[str, Any]:
    assembling.KERNEL_TIMEOUT_S = 40.0
    kernels = [
        kernel("hangs", "import time; time.sleep(600)"),
        kernel("good"),
        kernel("crashes", "import ctypes; ctypes.string_at(0)"),
        kernel("exits", "import os; os._exit(7)"),
        kernel("raises", "raise SystemError('no')"),
        kernel("nonsense", body="tmp1 = tl.no_such_thing(tmp0)"),
        kernel("also_good", body="tmp1 = tmp0 * 2"),
    ]
    done, _ = assemble(kernels, Assembling(processes=2))
    told = {
        one.name: {"note": one.note, "registers": one.resources.registers if one.resources else None}
        for one in done.kernels
    }
    return {"kernels": told, "notes": done.notes}


def order() -> dict[str, Any]:
    kernels = [
        kernel("backward_1", body="tmp1 = tmp0 + 5", phase=Phase.BACKWARD),
        kernel("forward_1", body="tmp1 = tmp0 + 2"),
        kernel("forward_2", body="tmp1 = tmp0 + 3"),
        kernel("looked_at", body="tmp1 = tmp0 + 4", line=9),
    ]
    how = Assembling(processes=1, file="model.py", line=9)
    begun = [job.source for job in assembling._in_order(report(*kernels), how)]
    names = {one.source: one.name for one in kernels}
    _, messages = assemble(kernels, how)
    told = [
        sorted((one.name for one in message.report.kernels if one.resources), key=[names[s] for s in begun].index)
        for message in messages
        if isinstance(message, RungDone)
    ]
    return {"order": [names[source] for source in begun], "told": told}


class Counted:
    """Counts the kernels that are compiled rather than found."""

    def __init__(self) -> None:
        self.rounds: list[int] = []
        self._found = Maker.found

    def round(self, work: Any) -> Any:
        self.rounds.append(0)
        counted = self

        def found(maker: Maker, source: str) -> Any:
            kept = counted._found(maker, source)
            counted.rounds[-1] += kept is None
            return kept

        Maker.found = found  # type: ignore[method-assign]
        try:
            return work()
        finally:
            Maker.found = self._found  # type: ignore[method-assign]


def again(folder: Path) -> dict[str, Any]:
    how, counted = Assembling(processes=2, store=str(folder)), Counted()
    kernels = [kernel("triton_poi_0"), kernel("triton_poi_1", body="tmp1 = tmp0 * 3")]
    renumbered = [kernel("triton_poi_4"), kernel("triton_poi_15", body="tmp1 = tmp0 * 3")]
    facts, names = [], []
    for those in (kernels, kernels, renumbered):
        done, _ = counted.round(lambda those=those: assemble(those, how))
        facts.append([codec.to_json(one.configs) for one in done.kernels])
        text = KernelStore(folder).text(str(done.kernels[1].stored), 0, "ptx", done.kernels[1].name) or ""
        names.append(f".entry {done.kernels[1].name}(" in text)
    return {"compiled": counted.rounds, "facts": facts, "names": names[::2]}


def unwritable(folder: Path) -> dict[str, Any]:
    (folder / "file").write_text("no folder")
    done, _ = assemble([kernel("triton_poi_0")], Assembling(store=str(folder / "file" / "store")))
    (one,) = done.kernels
    return {
        "registers": one.resources.registers if one.resources else None,
        "stored": one.stored,
        "notes": done.notes,
    }


def damaged(folder: Path) -> dict[str, Any]:
    how, counted, facts = Assembling(store=str(folder)), Counted(), []
    for _ in range(3):
        done, _ = counted.round(lambda: assemble([kernel("triton_poi_0")], how))
        facts.append(codec.to_json(done.kernels[0].configs))
        if len(facts) == 1:
            (path,) = folder.rglob("*.zip")
            path.write_bytes(path.read_bytes()[:100])
    return {"compiled": counted.rounds, "same": facts[0] == facts[1] == facts[2]}


def main(how: str) -> None:
    simgpu.simulate(DEVICE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = {
            "hostile": hostile,
            "order": order,
            "again": lambda: again(folder),
            "unwritable": lambda: unwritable(folder),
            "damaged": lambda: damaged(folder),
        }
        print(json.dumps(ways[how]()))


if __name__ == "__main__":
    main(sys.argv[1])
