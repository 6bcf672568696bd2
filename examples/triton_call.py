"""A hand-written Triton kernel inside a compiled function.

torch.compile takes the kernel into its graph without a break: it calls your kernel as it is, and makes kernels of its
own for what stands around it.  Running this needs an NVIDIA GPU.
"""

import torch

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError("examples/triton_call.py needs Triton: pip install triton (Linux).") from error

REQUIRES = "cuda"
ENTRY = "gated_residual"


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    gate = tl.load(gate_ptr + offsets, mask=mask)
    up = tl.load(up_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up, mask=mask)


def swiglu(gate, up):
    """`silu(gate) * up` for two contiguous tensors of the same shape."""
    out = torch.empty_like(gate)
    size = out.numel()
    swiglu_kernel[(triton.cdiv(size, 1024),)](gate, up, out, size, BLOCK=1024)
    return out


def gated_residual(x, gate, up):
    """A gated unit with a residual, normalised: the kernel above between two pieces of plain PyTorch."""
    y = swiglu(torch.tanh(gate), up)
    return torch.nn.functional.layer_norm(x + y, x.shape[-1:])


def get_inputs():
    return tuple(torch.randn(64, 512) for _ in range(3))


def main():
    if not torch.cuda.is_available():
        print("This example calls a Triton kernel, which needs an NVIDIA GPU; torch finds none on this machine.")
        return
    torch.manual_seed(0)
    inputs = [x.cuda() for x in get_inputs()]
    difference = (torch.compile(gated_residual)(*inputs) - gated_residual(*inputs)).abs().max()
    print(f"compiled and eager differ by at most {difference:.2e}")


if __name__ == "__main__":
    main()
