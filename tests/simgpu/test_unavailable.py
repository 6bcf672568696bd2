"""Where a GPU cannot be simulated, the user gets a sentence with the reason, and torch stays as it was."""

import platform
import shutil
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow


def run(text: str, before: str = "") -> subprocess.CompletedProcess[str]:
    text = (
        textwrap.dedent(before)
        + "import torch\nfrom inductoscope.protocol import devices\nfrom inductoscope.compiler import simgpu\n"
        "H200, A100, MI300X = map(devices.find, ('H200', 'A100', 'MI300X'))\n" + textwrap.dedent(text)
    )
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)


def test_importing_changes_nothing() -> None:
    done = run("""
        assert not torch.cuda.is_available() or not torch.cuda.is_initialized()
        assert simgpu.active() is None
        assert torch.Generator is torch._C.Generator
        assert torch.nn.Module._apply.__module__ == "torch.nn.modules.module"
    """)
    assert done.returncode == 0, done.stderr


NO_MEMORY = """
import mmap, os, shutil
def no(*a, **k): raise PermissionError(13, 'Permission denied')
mmap.mmap = no
os.environ.pop('CC', None)
"""

SABOTAGES = {
    "riscv64": "import platform; platform.machine = lambda: 'riscv64'",
    "darwin": "import sys; sys.platform = 'darwin'",
    "executable memory (Permission denied), and there is no C compiler": NO_MEMORY + "shutil.which = lambda _: None",
    "cannot be used: Command": NO_MEMORY + "os.environ['CC'] = 'false'",
    "laid out in an unknown way": "native._virtual_methods = lambda header: ['other']",
    "2.11 to 2.15": "def no(header): raise FileNotFoundError(2, 'gone', header)\nnative._virtual_methods = no",
}


def test_refusal_is_a_sentence_and_leaves_torch_alone() -> None:
    done = run(f"""
import os, sys
from inductoscope.compiler.simgpu import native
for sabotage in {list(SABOTAGES.values())!r}:
    if (child := os.fork()) == 0:
        exec(sabotage)
        try:
            simgpu.simulate(H200)
        except simgpu.SimulationUnavailableError as error:
            print(error, flush=True)
        assert simgpu.active() is None
        assert torch.ones(2, requires_grad=True).sum().backward() is None
        assert not torch._C._has_cuda or torch.version.cuda
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""")
    assert done.returncode == 0, done.stderr
    sentences = done.stdout.strip().splitlines()
    assert len(sentences) == len(SABOTAGES)
    for reason, sentence in zip(SABOTAGES, sentences, strict=True):
        assert reason in sentence
        assert sentence.startswith("The GPU cannot be simulated here: ")
        assert sentence.endswith("use `--device cpu`.")


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="the platforms with machine code")
def test_machine_code_of_this_platform_returns_its_constant() -> None:
    import ctypes

    from inductoscope.compiler.simgpu.constant_functions import CompiledCode, MachineCode

    class Pair(ctypes.Structure):
        _fields_ = (("first", ctypes.c_uint64), ("second", ctypes.c_uint64))

    compilers = [[compiler] for compiler in filter(None, [shutil.which("cc")])]
    for functions in (MachineCode(), *map(CompiledCode, compilers)):
        for value in (0, 1, 91900, 2**31):
            pair = ctypes.CFUNCTYPE(Pair)(functions.returning(value))()
            assert (pair.first, pair.second) == (value, 0)
        assert ctypes.CFUNCTYPE(ctypes.c_double)(functions.returning(1e-5))() == 1e-5
        assert functions.returning(1) == functions.returning(1) != functions.returning(1.0)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_where_executable_memory_is_refused_the_compiler_writes_the_functions() -> None:
    done = run(
        """
        assert simgpu.simulate(H200).notes() == ()
        x = torch.ones(3, device="cuda", requires_grad=True)
        x.sin().sum().backward()
        assert torch.allclose(x.grad.cpu(), torch.ones(3).cos())
    """,
        before=NO_MEMORY,
    )
    assert done.returncode == 0, done.stderr


NO_TRITON = """
    import sys

    class NoTriton:
        def find_spec(self, name, *_):
            if name.partition(".")[0] == "triton":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, NoTriton())
"""


def test_without_triton_graphs_are_captured_and_a_sentence_says_what_is_missing() -> None:
    done = run(
        """
        from inductoscope.compiler.lower import Depth, Lowering
        from inductoscope.compiler.usercode import UserCode

        simulation = simgpu.simulate(H200)
        (note,) = simulation.notes()
        assert "`pip install triton` adds it" in note.text, note
        assert not simulation.has_kernels
        with Lowering(UserCode(also=()), "sim:H200", Depth.GRAPHS):
            x = torch.ones(3, device="cuda", requires_grad=True)
            torch.compile(lambda x: x.sin() * 2)(x).sum().backward()
        assert torch.allclose(x.grad.cpu(), 2 * torch.ones(3).cos())
    """,
        before=NO_TRITON,
    )
    assert done.returncode == 0, done.stderr
