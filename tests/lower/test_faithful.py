"""Watching changes nothing: same text as a real run, same results as eager, no compiler started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from lower.support.driver import load, lower, run  # noqa: E402

pytestmark = pytest.mark.slow

_AUDITED = """
import sys
started = []
sys.addaudithook(lambda event, args: started.append((event, args[0])) if event in
    ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork") else None)
from lower.support.driver import load, lower, run
module = load(sys.argv[1])
facts = lower(lambda: run(module))
assert facts.kernels and not facts.problems, facts.problems
assert any("Vectorized" in (kernel.source or "") for kernel in facts.kernels)
sys.exit(f"started {started}" if started else 0)
"""


@pytest.fixture
def written(monkeypatch):
    """Every wrapper that Inductor writes, kernels included, in order."""
    from torch._inductor.graph import GraphLowering

    texts: list[str] = []
    monkeypatch.setattr(GraphLowering, "save_output_code", staticmethod(texts.append))
    return texts


def unnumbered(wrapper: str) -> str:
    """Without the running number of the graph in this process, which is all that may differ."""
    return re.sub(r"# AOT ID: \['\d+_", "# AOT ID: ['N_", wrapper)


@pytest.mark.skipif(shutil.which("g++") is None, reason="a real run needs a C++ compiler")
@pytest.mark.parametrize("name", ["transformer", "conv_bn", "training", "dynamic"])
def test_generated_code_is_that_of_a_real_run(name, written):
    module = load(name)
    facts = lower(lambda: run(module))
    watched = [unnumbered(wrapper.source) for wrapper in facts.wrappers]
    assert watched == list(map(unnumbered, written))
    written.clear()
    torch._dynamo.reset()
    with torch._inductor.config.patch(fx_graph_cache=False), torch._functorch.config.patch(enable_autograd_cache=False):
        result = run(module)
        if isinstance(result, torch.Tensor) and result.requires_grad and not hasattr(module, "exercise"):
            result.sum().backward()
    assert watched == list(map(unnumbered, written))


@pytest.mark.parametrize("name", ["transformer", "dynamic"])
def test_the_program_goes_on_with_eager_values(name):
    module = load(name)
    results = []
    lower(lambda: results.append(run(module)))
    torch._dynamo.reset()
    with torch.compiler.set_stance("force_eager"):
        expected = run(module)
    torch.testing.assert_close(results[0], expected, rtol=0, atol=0)


def test_training_reaches_the_parameters():
    module = load("training")
    model = module.Model()
    lower(lambda: module.exercise(torch.compile(model)))
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_no_process_is_started(tmp_path):
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(tests)}
    done = subprocess.run(
        [sys.executable, "-c", _AUDITED, "transformer"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
