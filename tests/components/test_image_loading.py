# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Images as they are found in the wild: each either works or gives one clear sentence."""

import base64
import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from haystack import Document
from haystack.dataclasses import ByteStream, ImageContent
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from radical_haystack.components import image_loading
from radical_haystack.components.image_loading import (
    ImageReadError,
    load_document_image,
    load_document_images,
    load_image,
)

RED, BLUE, WHITE = (220, 30, 40), (30, 60, 200), (255, 255, 255)


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def halves(size: tuple[int, int] = (64, 32)) -> Image.Image:
    """Left half red, right half blue."""
    image = Image.new("RGB", size, RED)
    ImageDraw.Draw(image).rectangle((size[0] // 2, 0, *size), fill=BLUE)
    return image


def blob_document(data: bytes, mime_type: str | None = "image/png", **meta: object) -> Document:
    return Document(id="doc-1", blob=ByteStream(data, mime_type=mime_type), meta=meta)


def near(pixel: object, colour: tuple[int, int, int], tolerance: int = 30) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(pixel, colour, strict=True))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "TGA", "JPEG2000", "AVIF"])
def test_common_formats(form: str) -> None:
    image = load_document_image(blob_document(encoded(halves(), form), "image/x"))
    assert image.mode == "RGB"
    assert image.size == (64, 32)
    assert near(image.getpixel((8, 16)), RED)
    assert near(image.getpixel((56, 16)), BLUE)


def test_exif_orientation_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 90 degrees clockwise to see it upright
    image = load_document_image(blob_document(encoded(halves(), "JPEG", exif=exif, quality=95), "image/jpeg"))
    assert image.size == (32, 64)
    assert near(image.getpixel((16, 8)), RED)
    assert near(image.getpixel((16, 56)), BLUE)


def test_cmyk_jpeg() -> None:
    image = load_document_image(blob_document(encoded(halves().convert("CMYK"), "JPEG"), "image/jpeg"))
    assert near(image.getpixel((8, 16)), RED, 40)


def test_palette_with_transparency_is_laid_on_white() -> None:
    palette = halves().quantize(2)
    transparent = palette.getpixel((56, 16))
    image = load_document_image(blob_document(encoded(palette, "PNG", transparency=transparent)))
    assert near(image.getpixel((8, 16)), RED)
    assert near(image.getpixel((56, 16)), WHITE, 0)


def test_half_transparent_pixels_are_blended_with_white() -> None:
    image = load_document_image(blob_document(encoded(Image.new("RGBA", (8, 8), (0, 0, 0, 128)), "PNG")))
    assert near(image.getpixel((4, 4)), (127, 127, 127), 1)


def test_sixteen_bit_grey_keeps_its_scale() -> None:
    values = np.array([[0, 0x7FFF, 0xFFFF]], dtype=np.uint16).repeat(4, axis=0)
    image = load_document_image(blob_document(encoded(Image.fromarray(values), "PNG")))
    assert [image.getpixel((x, 1)) for x in range(3)] == [(0, 0, 0), (127, 127, 127), (255, 255, 255)]


def test_float_image_is_stretched() -> None:
    values = np.array([[-1.0, 0.0, 3.0]], dtype=np.float32)
    image = load_document_image(blob_document(encoded(Image.fromarray(values), "TIFF"), "image/tiff"))
    assert [image.getpixel((x, 0))[0] for x in range(3)] == [0, 64, 255]


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_animation_gives_its_first_frame(form: str) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, BLUE)]
    data = encoded(frames[0], form, save_all=True, append_images=frames[1:], lossless=True)
    assert near(load_document_image(blob_document(data)).getpixel((8, 8)), RED)


def test_one_pixel_high_strip() -> None:
    assert load_document_image(blob_document(encoded(halves((3000, 1)), "PNG"))).size == (3000, 1)


def test_large_picture_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_loading, "MAX_PIXELS", 10_000)
    for form in ("PNG", "JPEG"):
        image = load_document_image(blob_document(encoded(halves((1600, 800)), form)))
        assert image.width * image.height <= 10_000
        assert image.width == pytest.approx(2 * image.height, abs=2)
        assert near(image.getpixel((5, 5)), RED)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "TIFF"])
def test_truncated_file_is_refused(form: str) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    data = encoded(noise, form)
    with pytest.raises(ImageReadError, match=r"Document 'doc-1' cannot be read: .+\."):
        load_document_image(blob_document(data[: len(data) // 2]))


def test_decompression_bomb_is_refused() -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    with pytest.raises(ImageReadError, match="Document 'doc-1' cannot be read: .*decompression bomb"):
        load_document_image(blob_document(bomb))


def test_postscript_is_refused() -> None:
    with pytest.raises(ImageReadError, match="not an image of a known format"):
        load_document_image(blob_document(encoded(halves(), "EPS"), "image/eps"))


@pytest.mark.parametrize("brand", [b"heic", b"mif1"])
def test_heic_is_refused_by_its_name(brand: bytes) -> None:
    data = b"\0\0\0\x18ftyp" + brand + b"\0\0\0\0mif1heic" + bytes(64)
    with pytest.raises(ImageReadError, match=r"cannot be read: HEIC is not read; convert it to JPEG\."):
        load_document_image(blob_document(data, "image/heic"))


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"II*\0"]))
@settings(max_examples=150, deadline=None)
def test_garbage_gives_the_one_error(data: bytes, magic: bytes) -> None:
    with pytest.raises(ImageReadError, match="^Document 'doc-1' "):
        load_document_image(blob_document(magic + data))


@given(st.integers(0, 2000), st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_damaged_byte_gives_an_image_or_the_one_error(position: int, value: int) -> None:
    data = bytearray(encoded(halves(), "PNG"))
    data[position % len(data)] = value
    try:
        assert load_document_image(blob_document(bytes(data))).mode == "RGB"
    except ImageReadError as error:
        assert str(error).startswith("Document 'doc-1' ")


def test_path_under_root(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    halves().save(tmp_path / "sub" / "a.png")
    document = Document(meta={"image": "sub/a.png"})
    assert load_document_image(document, file_path_meta_field="image", root_path=str(tmp_path)).size == (64, 32)


def test_wrong_suffix_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(encoded(halves(), "PNG"))
    (tmp_path / "picture.jpg").write_bytes(encoded(halves(), "WEBP"))
    for name in ("picture", "picture.jpg"):
        assert load_image(tmp_path / name).size == (64, 32)


@pytest.mark.parametrize("escape", ["../secret.png", "sub/../../secret.png", "link.png", "linked/secret.png"])
def test_path_outside_the_root_is_refused(tmp_path: Path, escape: str) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    halves().save(tmp_path / "secret.png")
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (root / "linked").symlink_to(tmp_path)
    with pytest.raises(ImageReadError, match="Document 'd' names the path .* outside the root"):
        load_document_image(Document(id="d", meta={"file_path": escape}), root_path=str(root))
    with pytest.raises(ImageReadError, match="outside the root"):
        load_image(str(tmp_path / "secret.png"), root_path=str(root))


@pytest.mark.parametrize(
    ("file_path", "reason"),
    [
        ("missing.png", "there is no file"),
        ("", "no path"),
        (7, "no path"),
        ("x" * 5000, "cannot be followed"),
        (".", "no file"),
    ],
)
def test_bad_path(tmp_path: Path, file_path: object, reason: str) -> None:
    for root in (str(tmp_path), ""):
        with pytest.raises(ImageReadError, match=f"^Document 'd' .*{reason}"):
            load_document_image(Document(id="d", meta={"file_path": file_path}), root_path=root)


def test_link_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    with pytest.raises(ImageReadError, match="^Document 'd' names "):
        load_document_image(Document(id="d", meta={"file_path": "loop.png"}), root_path=str(tmp_path))


def test_no_image_at_all() -> None:
    with pytest.raises(ImageReadError, match="Document 'd' has no image: no blob and no path"):
        load_document_image(Document(id="d", content="only text"))


@pytest.mark.parametrize("mime_type", ["text/plain", None])
def test_blob_that_is_no_image(mime_type: str | None) -> None:
    with pytest.raises(ImageReadError, match=f"blob of MIME type '{mime_type}'"):
        load_document_image(blob_document(b"hello", mime_type))


def test_empty_blob() -> None:
    with pytest.raises(ImageReadError, match="Document 'doc-1' cannot be read: it is empty"):
        load_document_image(blob_document(b""))


@pytest.fixture
def pdf() -> bytes:
    pages = [Image.new("RGB", (60, 40), colour) for colour in (RED, BLUE)]
    return encoded(pages[0], "PDF", save_all=True, append_images=pages[1:])


def test_pdf_page(tmp_path: Path, pdf: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf)
    for document in (
        Document(meta={"file_path": "a.pdf", "page_number": 2}),
        blob_document(pdf, "application/pdf", page_number=2),
    ):
        image = load_document_image(document, root_path=str(tmp_path))
        assert near(image.getpixel((image.width // 2, image.height // 2)), BLUE)


@pytest.mark.parametrize("page_number", [None, 0, "1", 3])
def test_pdf_page_that_is_not_there(pdf: bytes, page_number: object) -> None:
    with pytest.raises(ImageReadError, match="Document 'doc-1' .*page"):
        load_document_image(blob_document(pdf, "application/pdf", page_number=page_number))


def test_damaged_pdf(pdf: bytes) -> None:
    with pytest.raises(ImageReadError, match="Document 'doc-1' cannot be read: its PDF is damaged"):
        load_document_image(blob_document(b"%PDF-1.4 nothing", "application/pdf", page_number=1))


def test_every_kind_of_source(tmp_path: Path) -> None:
    data = encoded(halves(), "PNG")
    (tmp_path / "a.png").write_bytes(data)
    sources = [
        "a.png",
        Path("a.png"),
        ByteStream(data),
        ImageContent(base64_image=base64.b64encode(data).decode(), mime_type="image/png"),
        Document(meta={"file_path": "a.png"}),
        halves(),
    ]
    for source in sources:
        assert load_image(source, root_path=str(tmp_path)).tobytes() == halves().tobytes()


def test_source_of_another_kind_is_refused() -> None:
    with pytest.raises(ImageReadError, match="not int"):
        load_image(3)
    with pytest.raises(ImageReadError, match="base64"):
        load_image(ImageContent(base64_image="###", mime_type="image/png", validation=False))


def test_result_is_independent_of_a_given_pil_image() -> None:
    source = halves()
    load_image(source).paste(WHITE, (0, 0, 64, 32))
    assert near(source.getpixel((8, 16)), RED, 0)


def test_many_documents_in_order() -> None:
    documents = [blob_document(encoded(halves((20 + n, 20)), "PNG")) for n in range(20)]
    documents[7] = blob_document(b"broken")
    results = load_document_images(documents)
    assert isinstance(results[7], ImageReadError)
    assert [image.size[0] for image in results if isinstance(image, Image.Image)] == [
        20 + n for n in range(20) if n != 7
    ]
    assert load_document_images([]) == []
