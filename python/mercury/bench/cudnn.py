"""cuDNN's attention, by PyTorch's operators."""

from __future__ import annotations

from typing import Any

__all__ = ["attention", "attention_backward"]


def attention(torch: Any, q: Any, k: Any, v: Any, *, causal: bool = False) -> tuple[Any, Any]:
    """Attention of ``[b, s, h, d]`` tensors; causal is aligned at the first query and key.

    Returns
    -------
    tuple of torch.Tensor
        The output ``[b, s, h, d]``, and its log-sum-exp ``[b, h, s]`` in float32.
    """
    made = torch.ops.aten._scaled_dot_product_cudnn_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, True, 0.0, causal, False
    )
    return made[0].transpose(1, 2), made[1][..., 0]


def attention_backward(
    torch: Any, grad_o: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, *, causal: bool = False
) -> tuple[Any, Any, Any]:
    """Gradients of `attention`; ``o`` and ``lse`` may be of more keys than ``k`` has.

    Returns
    -------
    tuple of torch.Tensor
        Of the shapes of ``q``, ``k`` and ``v``.
    """
    seed = torch.zeros((), dtype=torch.int64, device=q.device)  # of dropout, which is off
    made = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        grad_o.transpose(1, 2),
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.transpose(1, 2),
        o.transpose(1, 2),
        lse[..., None],
        seed,
        seed,
        None,
        None,
        None,
        q.shape[1],
        k.shape[1],
        0.0,
        causal,
    )
    return made[0].transpose(1, 2), made[1].transpose(1, 2), made[2].transpose(1, 2)
