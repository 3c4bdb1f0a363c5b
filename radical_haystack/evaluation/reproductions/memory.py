# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""How much memory a computation needs at its peak beyond what was held before it."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


def peak_bytes(device: torch.device, run: Callable[[], object]) -> int:
    """
    Run something and measure its peak memory.

    On CUDA it is what the allocator counts. Elsewhere it is the size of all tensors that exist at one time and did not
    before: the same on every machine, but without the working memory inside an operation.

    :param device: The device it runs on.
    :param run: What to run.
    :returns: Bytes.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    with _LiveTensors() as tensors:
        run()
    return tensors.peak


class _LiveTensors(TorchDispatchMode):
    """Counts the bytes of storages from the operation that makes them to their end."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._known: set[int] = set()
        self._given: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # What an operation is given and was not made here existed before: views of it take no memory.
        tree_map_only(Tensor, self._see_given, (args, kwargs or {}))
        result = func(*args, **(kwargs or {}))
        tree_map_only(Tensor, self._see_made, result)
        return result

    def _see_given(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._known and key not in self._given:
            self._given.add(key)
            weakref.finalize(storage, self._given.discard, key)  # its place may be taken by another

    def _see_made(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known or key in self._given:
            return
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size
