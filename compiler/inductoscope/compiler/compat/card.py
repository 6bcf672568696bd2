"""What torch decides by timing on a card, and where.

Private parts of torch: `pad_mm.should_pad_bench_key` and `is_padded_faster` (padding of matmuls),
`AlgorithmSelectorCache.add_feedback_saver` and `key_of` (autotuning between kernels), and
`CachingAutotuner.benchmark_all_configs` with `launchers`, `filename` (configurations of one kernel).  Run with made-up
times on torch 2.11 to 2.15; what another version lacks is not recorded there, and the log names it.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler.compat import inductor
from inductoscope.compiler.compat.inductor import Point

logger = logging.getLogger(__name__)

Sizes = tuple[int, int, int, int]

_PADDING_KEY = Point("torch._inductor.fx_passes.pad_mm", "should_pad_bench_key", "which matmul is asked about")
_PADDING = Point("torch._inductor.fx_passes.pad_mm", "is_padded_faster", "the times of both forms of a matmul")
_CONFIGS = Point(
    "torch._inductor.runtime.triton_heuristics",
    "CachingAutotuner.benchmark_all_configs",
    "the times of a kernel's configurations",
)
# Decisions have to be made anew, in this process, where they can be seen.  Caches of autotuning stay as they are, since
# the texts of kernels tell of them: a worker's own lie in an empty folder.
_SETTINGS = {
    "compile_threads": 1,
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
    "autotune_in_subproc": False,
}


@dataclass(frozen=True)
class Ear:
    """Who is told of each decision, times in milliseconds.

    `padding`: torch's key, batch with m, k and n, time plain, time padded, verdict.  `ways`: operator, the layouts of
    its inputs, candidates with their times.  `configs`: the tuner with the times of its launchers.
    """

    padding: Callable[[str, Sizes, float, float, bool], None]
    ways: Callable[[str, str, Mapping[Any, float]], None]
    configs: Callable[[Any, Mapping[Any, float]], None]


@contextlib.contextmanager
def deciding(ear: Ear) -> Iterator[None]:
    """While the block compiles and runs, tell `ear` what torch decides by timing, all of it decided anew."""
    config = inductor.inductor_config()
    functorch = inductor.functorch_config()
    with contextlib.ExitStack() as stack:
        stack.enter_context(config.patch(inductor.known_settings(config, _SETTINGS)))
        stack.enter_context(functorch.patch(inductor.known_settings(functorch, {"enable_autograd_cache": False})))
        stack.enter_context(listening(ear))
        yield


@contextlib.contextmanager
def listening(ear: Ear) -> Iterator[None]:
    """While the block compiles and runs, tell `ear` what torch decides by timing, and change nothing else."""
    with contextlib.ExitStack() as stack:
        sizes: dict[str, Sizes] = {}
        stack.enter_context(inductor.replaced(_PADDING_KEY, lambda original: _remembering(original, sizes)))
        stack.enter_context(inductor.replaced(_PADDING, lambda original: _padding(original, sizes, ear)))
        stack.enter_context(inductor.replaced(_CONFIGS, lambda original: _configs(original, ear)))
        stack.enter_context(_ways(ear))
        yield


def sizes_of(mat1: Any, mat2: Any) -> Sizes:
    """Batch, m, k and n of a product, by the sizes of the example where they are symbols."""
    *batch, m, k = (_hint(size) for size in mat1.shape)
    return math.prod(batch), m, k, _hint(mat2.shape[-1])


def layouts(input_nodes: Sequence[Any]) -> str:
    """What torch's autotuning tells inputs apart by: device, dtype, sizes, strides and offset of each."""
    algorithms = importlib.import_module("torch._inductor.select_algorithm")
    return repr([algorithms.AlgorithmSelectorCache.key_of(node) for node in input_nodes])


@dataclass(frozen=True)
class Configuration:
    """A configuration as torch launches it."""

    blocks: dict[str, int]
    num_warps: int
    num_stages: int

    @staticmethod
    def of(config: Any) -> Configuration:
        """That of Triton's own object for it."""
        blocks = {name: size for name, size in config.kwargs.items() if isinstance(size, int)}
        return Configuration(blocks, config.num_warps, config.num_stages)


def winner(tuner: Any) -> Configuration | None:
    """What the tuner launches now; None while it has not chosen."""
    launchers = tuner.launchers
    return Configuration.of(launchers[0].config) if len(launchers) == 1 else None


def text(tuner: Any) -> str | None:
    """The source of the tuner's kernel, as Inductor wrote it; None where it is not known."""
    try:
        return Path(tuner.filename).read_text(encoding="utf-8")
    except (AttributeError, TypeError, OSError, UnicodeDecodeError):
        return None


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in a value, wherever torch itself would find them (`torch.utils._pytree`)."""
    leaves = importlib.import_module("torch.utils._pytree").tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _hint(size: Any) -> int:
    return int(size) if isinstance(size, int) else int(size.node.hint)


def _remembering(original: Callable[..., str], sizes: dict[str, Sizes]) -> Callable[..., str]:
    def should_pad_bench_key(match: Any, mat1: Any, mat2: Any, *args: Any, **kwargs: Any) -> str:
        key = original(match, mat1, mat2, *args, **kwargs)
        sizes[key] = sizes_of(mat1, mat2)
        return key

    return should_pad_bench_key


def _padding(original: Callable[..., bool], sizes: Mapping[str, Sizes], ear: Ear) -> Callable[..., bool]:
    def is_padded_faster(key: str, ori_time: float, pad_time: float) -> bool:
        verdict = original(key, ori_time, pad_time)
        if key in sizes:
            with _unharmed():
                ear.padding(key, sizes[key], ori_time, pad_time, bool(verdict))
        return verdict

    return is_padded_faster


def _configs(original: Callable[..., Any], ear: Ear) -> Callable[..., Any]:
    def benchmark_all_configs(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        timings = original(tuner, *args, **kwargs)
        with _unharmed():
            ear.configs(tuner, timings)
        return timings

    return benchmark_all_configs


@contextlib.contextmanager
def _ways(ear: Ear) -> Iterator[None]:
    def heard(timings: Mapping[Any, float], name: str, input_nodes: Sequence[Any], *_: Any) -> None:
        if len(timings) > 1:
            with _unharmed():
                ear.ways(name, layouts(input_nodes), timings)

    algorithms = importlib.import_module("torch._inductor.select_algorithm")
    algorithms.add_feedback_saver(heard)
    try:
        yield
    finally:
        algorithms.clear_feedback_savers()


@contextlib.contextmanager
def _unharmed() -> Iterator[None]:
    """Torch goes on as without us where something about a decision cannot be read."""
    try:
        yield
    except Exception:
        logger.warning("a decision of torch cannot be recorded", exc_info=True)


def available() -> bool:
    """Whether there is a card that torch can use."""
    return bool(torch.cuda.is_available())
