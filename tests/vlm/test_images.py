# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Any image becomes one that the encoder's processor takes, and images seen before are not encoded again."""

import threading
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from radical_haystack.vlm.families import ImageEncoding
from radical_haystack.vlm.images import fit_for_encoder
from radical_haystack.vlm.vision_cache import VisionCache, image_key


def encoding(numbers: int) -> ImageEncoding:
    """An encoding of `4 * numbers` bytes beside its grid of 24."""
    return ImageEncoding(torch.ones(3, dtype=torch.int64), torch.zeros(1, numbers), ())


class TestFit:
    @given(width=st.integers(1, 3000), height=st.integers(1, 3000))
    @settings(max_examples=30, deadline=None)
    def test_any_size_is_taken(self, tiny: SimpleNamespace, width: int, height: int) -> None:
        image = fit_for_encoder(Image.new("RGB", (width, height)), 16)
        assert min(image.size) >= 16
        assert max(image.size) <= 200 * min(image.size)
        if min(width, height) >= 16 and max(width, height) <= 200 * min(width, height):
            assert image.size == (width, height)
        grid = tiny.processor().image_processor(images=[image], return_tensors="pt")["image_grid_thw"]
        assert grid.min() >= 1

    def test_a_strip_keeps_its_content(self) -> None:
        strip = Image.new("RGB", (1000, 1), "red")
        strip.paste("blue", (500, 0, 1000, 1))
        fitted = fit_for_encoder(strip, 16)
        width, height = fitted.size
        assert (width, height) == (3200, 16)
        assert fitted.getpixel((width // 4, height // 2)) == (255, 0, 0)
        assert fitted.getpixel((3 * width // 4, height // 2)) == (0, 0, 255)

    def test_modes_and_empty_images(self) -> None:
        assert fit_for_encoder(Image.new("L", (20, 20)), 16).mode == "RGB"
        untouched = Image.new("RGB", (20, 20))
        assert fit_for_encoder(untouched, 16) is untouched
        with pytest.raises(ValueError, match=r"no pixels \(0 x 5\)"):
            fit_for_encoder(Image.new("RGB", (0, 5)), 16)


class TestKey:
    def test_depends_on_all_of_it(self) -> None:
        images = [
            Image.new("RGB", (4, 2)),
            Image.new("RGB", (2, 4)),
            Image.new("RGB", (4, 2), "red"),
            Image.new("HSV", (4, 2)),
        ]
        keys = [image_key(image, "model") for image in images] + [image_key(images[0], "other model")]
        assert len(set(keys)) == 5
        assert image_key(images[0].copy(), "model") == keys[0]


class TestCache:
    def test_the_least_recently_used_go_first(self) -> None:
        cache = VisionCache(3 * 64)
        for name in "abc":
            cache.put(name, encoding(10))
        assert cache.nbytes == 3 * 64
        cache.get("a")
        cache.put("d", encoding(10))
        assert [name for name in "abcd" if cache.get(name)] == ["a", "c", "d"]
        cache.put("e", encoding(26))
        assert [name for name in "abcde" if cache.get(name)] == ["d", "e"]
        assert cache.nbytes == 64 + 128

    def test_replacing_too_large_and_nothing(self) -> None:
        cache = VisionCache(100)
        cache.put("a", encoding(10))
        cache.put("a", encoding(12))
        assert (len(cache), cache.nbytes) == (1, 72)
        cache.put("b", encoding(100))
        assert cache.get("b") is None
        assert cache.get("a") is not None
        cache.clear()
        assert (len(cache), cache.nbytes) == (0, 0)
        off = VisionCache(0)
        off.put("a", encoding(1))
        assert off.get("a") is None
        with pytest.raises(ValueError, match="must not be negative, got -1"):
            VisionCache(-1)

    def test_threads(self) -> None:
        cache = VisionCache(10 * 64)

        def work(offset: int) -> None:
            for number in range(300):
                cache.put(str((number * offset) % 37), encoding(10))
                cache.get(str(number % 37))

        threads = [threading.Thread(target=work, args=(offset,)) for offset in (1, 5, 7, 11)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cache.nbytes == 64 * len(cache) == 640
