# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Muon (https://kellerjordan.github.io/posts/muon/) in float32; torch's own casts to bfloat16, slow on most CPUs."""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, distributed, nn


def orthogonalise(update: Tensor, steps: int = 5) -> Tensor:
    """Newton-Schulz iteration towards the nearest semi-orthogonal matrix, over a stack `(n, rows, cols)`."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = update.shape[-2] > update.shape[-1]
    x = update.transpose(-1, -2) if tall else update
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.transpose(-1, -2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.transpose(-1, -2) if tall else x


def orthogonalised_together(updates: Tensor) -> Tensor:
    """`orthogonalise`, the stack's matrices shared out among the processes of a run."""
    if not distributed.is_initialized():
        return orthogonalise(updates)
    mine = slice(distributed.get_rank(), None, distributed.get_world_size())
    result = torch.zeros_like(updates)
    result[mine] = orthogonalise(updates[mine])
    distributed.all_reduce(result)
    return result


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, for matrices; scaled so that AdamW's learning rate fits (arXiv 2502.16982)."""

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.1) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = []
                for parameter in parameters:
                    buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                    buffer.lerp_(parameter.grad, 1 - group["momentum"])
                    updates.append(parameter.grad.lerp(buffer, group["momentum"]))
                stacked = orthogonalised_together(torch.stack(updates)) * (0.2 * max(shape) ** 0.5)
                for parameter, update in zip(parameters, stacked, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update, alpha=-group["lr"])


def build_optimizers(
    module: nn.Module, lr: float, extra: Iterable[Tensor] = (), *, adam_lr: float | None = None
) -> list[torch.optim.Optimizer]:
    """Muon for hidden matrices, AdamW for embeddings, norms, biases, the wide mergers (for speed) and `extra`."""
    matrices, rest = [], list(extra)
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        hidden_matrix = parameter.ndim == 2 and not any(part in name for part in ("embed", "lm_head", "merger"))
        (matrices if hidden_matrix else rest).append(parameter)
    adam = torch.optim.AdamW(rest, lr=adam_lr or lr, betas=(0.9, 0.98), weight_decay=0.0)
    optimizers = [Muon(matrices, lr=lr), adam]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return optimizers
