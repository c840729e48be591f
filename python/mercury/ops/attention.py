"""Softmax attention of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dsl import Mask
from ..dsl.nodes import Kernel
from ..runtime.plan import Plan
from .errors import OpError
from .plans import AttentionShape, Plans
from .tensors import back, dtype_of, is_torch, values_of

__all__ = ["attention"]


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    plan: Plan | Plans,
    mask: Mask | str | None = None,
    scale: float | None = None,
    lse: bool = False,
) -> Any:
    """``softmax(scale * q k^T + mask) v`` by a plan, on its embedded ranks.

    The tensors are whole: the plan's layouts cut them into the shards of its ranks, and the
    result is put together. Forward only.

    Parameters
    ----------
    q
        Queries, ``[b, sq, h, d]``: an array, or a PyTorch tensor of the CPU.
    k, v
        Keys ``[b, sk, hk, d]`` and values ``[b, sk, hk, dv]`` of the same kind and type;
        hk divides h.
    plan
        A compiled plan of `mercury.programs.attention` for exactly these shapes, or `Plans`,
        which makes and keeps one for each shape.
    mask
        ``"full"``, ``"causal"`` or a `Mask`. It belongs to the plan: with a compiled plan it
        may be left out, and another one than the plan's is refused. `Plans` take it; full
        when not given.
    scale
        Of the scores, likewise; ``1 / sqrt(d)`` when not given to `Plans`.
    lse
        Whether to give the log-sum-exp, too.

    Returns
    -------
    array or tensor, or two
        ``[b, sq, h, dv]``, of the kind and type of ``q``; with ``lse`` also ``[b, h, sq]`` in
        float32, or float64 for float64.

    Raises
    ------
    OpError
        When tensors, options and plan do not fit each other; it says which plan would.
    RunError
        When a rank fails.

    Examples
    --------
    >>> import numpy as np
    >>> import mercury as mc
    >>> q = k = v = np.ones((1, 7, 2, 4), np.float32)
    >>> program = mc.programs.attention(h=2, sq=7, sk=7, d=4, dtype="f32", mask="causal")
    >>> plan = mc.Schedule(program, mc.Mesh(gpu=2)).parallelize("sq", "gpu").compile()
    >>> mc.ops.attention(q, k, v, plan=plan).shape
    (1, 7, 2, 4)
    """
    given = _shape_of(q, k, v)
    if isinstance(plan, Plans):
        made = plan.attention(given, mask=mask, scale=scale)
    elif isinstance(plan, Plan):
        made = plan
        _check(made, given, mask, scale)
    else:
        raise OpError(
            f"plan must be a compiled plan or mercury.ops.Plans, got {plan!r:.60}; a schedule "
            "is compiled by schedule.compile()"
        )
    tensors = {"Q": q, "K": k, "V": v}
    whole = {name: values_of(name.lower(), each) for name, each in tensors.items()}
    result = made.gather(made.run(made.scatter(**whole)))
    out = back(result["O"], q)
    if not lse:
        return out
    return out, back(result["LSE"], q, wide=True)


def _shape_of(q: Any, k: Any, v: Any) -> AttentionShape:
    """Check that the tensors fit each other."""
    tensors = {"q": q, "k": k, "v": v}
    for name, each in tensors.items():
        if not is_torch(each) and not isinstance(each, np.ndarray):
            raise OpError(
                f"{name} must be a NumPy array or a PyTorch tensor, got {type(each).__name__}"
            )
        if is_torch(each) != is_torch(q):
            raise OpError("q, k and v must all be NumPy arrays, or all PyTorch tensors")
        if each.ndim != 4:
            raise OpError(
                f"{name} must have the dimensions [batch, positions, heads, depth], got shape "
                f"{tuple(each.shape)}"
            )
    dtypes = {name: dtype_of(name, each) for name, each in tensors.items()}
    if len(set(dtypes.values())) > 1:
        raise OpError(f"q, k and v must be of one type, got {dtypes}; convert them first")
    (b, sq, h, d), (kb, sk, hk, kd), (vb, vk, vh, dv) = (
        tuple(int(size) for size in each.shape) for each in tensors.values()
    )
    if (kb, vb) != (b, b) or vk != sk or vh != hk or kd != d or hk < 1 or h % hk:
        raise OpError(
            "expected q [b, sq, h, d], k [b, sk, hk, d] and v [b, sk, hk, dv] with hk dividing "
            f"h, got {(b, sq, h, d)}, {(kb, sk, hk, kd)} and {(vb, vk, vh, dv)}"
        )
    return AttentionShape(b=b, sq=sq, sk=sk, h=h, d=d, dv=dv, group=h // hk, dtype=dtypes["q"])


def _check(plan: Plan, given: AttentionShape, mask: Mask | str | None, scale: Any) -> None:
    """Refuse what a compiled plan does not compute."""
    kernels = [op for nest in plan.program.nests for op in nest.ops if isinstance(op, Kernel)]
    own = {buffer.name: buffer.shape for buffer in plan.program.inputs}
    named = [kernel for kernel in kernels if kernel.name == "attention_fwd"]
    if set(own) != {"Q", "K", "V"} or len(named) != 1:
        raise OpError(
            f"this plan is of {plan.program.name} with inputs {', '.join(own)}; expected one "
            "of mercury.programs.attention, without a sink"
        )
    kernel = named[0]
    wanted = {"Q": given.q, "K": given.k, "V": given.v}
    dtype = plan.program.inputs[0].dtype
    if own != wanted or dtype != given.dtype:
        raise OpError(
            f"a plan is for one shape: this one takes {_told(own, dtype)}, got "
            f"{_told(wanted, given.dtype)}; compile one for this shape, or pass "
            "plan=mercury.ops.Plans(...), which keeps one for each"
        )
    if mask is not None and Mask.of(mask) != kernel.mask:
        raise OpError(
            f"the mask belongs to the plan: this one has '{kernel.mask}', asked for was "
            f"'{Mask.of(mask)}'; compile a plan of a program with that mask"
        )
    if scale is not None and scale != kernel.scale:
        raise OpError(
            f"the scale belongs to the plan: this one has {kernel.scale}, asked for was "
            f"{scale}; compile a plan of a program with that scale"
        )


def _told(shapes: dict[str, tuple[int, ...]], dtype: str) -> str:
    return ", ".join(f"{name}{list(shape)}" for name, shape in shapes.items()) + f" of {dtype}"
