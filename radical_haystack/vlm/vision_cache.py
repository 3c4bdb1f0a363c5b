# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Encodings of images by their content, so that a candidate seen before need not be encoded again."""

import hashlib
import threading
from collections import OrderedDict

from PIL import Image

from radical_haystack.vlm.families import ImageEncoding


def image_key(image: Image.Image, context: str) -> str:
    """
    A key that is equal only for equal pixels encoded in the same way.

    :param image: The image.
    :param context: What else the encoding depends on, such as the model and its image size.
    """
    digest = hashlib.sha256(f"{context}\0{image.mode}\0{image.width}x{image.height}\0".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


class VisionCache:
    """
    Least-recently-used encodings within a budget of bytes; safe to use from several threads.

    :param max_bytes: The most that is held; an encoding larger than that is not kept, and 0 keeps nothing.
    :raises ValueError: If the budget is negative.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 0:
            raise ValueError(f"The vision cache's size must not be negative, got {max_bytes} bytes.")
        self.max_bytes = max_bytes
        self._entries: OrderedDict[str, ImageEncoding] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> ImageEncoding | None:
        """
        The encoding under a key, now the most recently used.

        :param key: See `image_key`.
        """
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: str, encoding: ImageEncoding) -> None:
        """
        Keep an encoding, dropping the least recently used ones until it fits.

        :param key: See `image_key`.
        :param encoding: The encoding.
        """
        with self._lock:
            if key in self._entries:
                self._bytes -= self._entries.pop(key).nbytes
            if encoding.nbytes > self.max_bytes:
                return
            self._entries[key] = encoding
            self._bytes += encoding.nbytes
            while self._bytes > self.max_bytes:
                self._bytes -= self._entries.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)
