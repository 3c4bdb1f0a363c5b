# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The one way from a document (or a path, bytes, a picture) to an RGB image, shared by everything that reads images."""

import base64
import binascii
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from haystack import Document
from haystack.components.converters.image.image_utils import _convert_pdf_to_images
from haystack.dataclasses import ByteStream, ImageContent
from PIL import Image, ImageOps, UnidentifiedImageError

ImageSource: TypeAlias = str | Path | ByteStream | ImageContent | Document | Image.Image

# Pictures that Pillow decodes itself. EPS is not among them: it would run an external program on the file.
_PICTURES = "AVIF BMP DIB GIF ICNS ICO JPEG JPEG2000 PCX PNG PPM PSD SGI TGA TIFF WEBP XBM XPM".split()
Image.init()
FORMATS = tuple(name for name in _PICTURES if name in Image.OPEN)  # not every build of Pillow has all
"""The image formats that are read."""

MAX_PIXELS = 4096 * 4096
"""Larger pictures are reduced to this many pixels as they are read [choice]: no model here looks at more, and twenty
photographs of 100 megapixels would fill 6 GB."""

_PDF = "application/pdf"
_LOADING_THREADS = 8
_pdfium_lock = threading.Lock()  # PDFium must not be entered by two threads at once

_SUFFIXES = frozenset(suffix for suffix, form in Image.registered_extensions().items() if form in FORMATS)
_HEIC_SUFFIXES = frozenset({".heic", ".heif", ".hif"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})


class ImageReadError(ValueError):
    """An image that cannot be used; the message is one sentence that names it and the reason."""


def load_image(source: ImageSource, *, file_path_meta_field: str = "file_path", root_path: str = "") -> Image.Image:
    """
    Read an image from anything that carries one, upright and in RGB.

    EXIF orientation is applied, transparency is laid on white, CMYK and 16-bit images are converted, an animation gives
    its first frame, and pictures above `MAX_PIXELS` are reduced.

    :param source: A path, a `ByteStream`, an `ImageContent`, a PIL image, or a `Document` (see `load_document_image`).
    :param file_path_meta_field: For a `Document`: the metadata field that holds its path.
    :param root_path: The folder that relative paths start from and that no path may leave; empty for no such limit.
    :returns: An RGB image of its own: changing it leaves the source as it was.
    :raises ImageReadError: If there is no readable image; the message names the source and the reason.
    """
    if isinstance(source, Document):
        return load_document_image(source, file_path_meta_field=file_path_meta_field, root_path=root_path)
    if isinstance(source, str | Path):
        name = f"Image '{source}'"
        return _open_bytes(_read(_resolve(source, root_path, name=name), name), name=name)
    if isinstance(source, ByteStream):
        return _open_bytes(source.data, name=f"Image '{source.meta.get('file_path', 'given as a ByteStream')}'")
    if isinstance(source, ImageContent):
        name = "Image given as ImageContent"
        try:
            data = base64.b64decode(source.base64_image, validate=True)
        except binascii.Error as error:
            raise ImageReadError(f"{name} cannot be read: its base64 text is broken ({error}).") from error
        return _open_bytes(data, name=name)
    if isinstance(source, Image.Image):
        return _convert(source, name="Image given as a PIL image")
    raise ImageReadError(
        "An image must be a path, a ByteStream, an ImageContent, a Document or a PIL image, "
        f"not {type(source).__name__}."
    )


def load_document_image(
    document: Document, *, file_path_meta_field: str = "file_path", root_path: str = ""
) -> Image.Image:
    """
    Read the image of a document: its `blob` if that holds an image or a PDF, else the file its metadata names.

    A PDF, as blob or file, needs the page in `meta["page_number"]`, counted from 1.

    :param document: The document.
    :param file_path_meta_field: The metadata field that holds the path of its image or PDF.
    :param root_path: The folder that relative paths start from and that no path may leave; empty for no such limit.
    :returns: An RGB image, as `load_image` makes it.
    :raises ImageReadError: If it has no readable image; the message names the document and the reason.
    """
    name = f"Document '{document.id}'"
    if document.blob is not None:
        mime_type = document.blob.mime_type or document.meta.get("mime_type")
        if mime_type == _PDF:
            return _open_pdf_page(document.blob, document.meta.get("page_number"), name=name)
        if str(mime_type).startswith("image/"):
            return _open_bytes(document.blob.data, name=name)
        if file_path_meta_field not in document.meta:
            raise ImageReadError(f"{name} has a blob of MIME type '{mime_type}', which is neither an image nor a PDF.")
    file_path = document.meta.get(file_path_meta_field)
    if not isinstance(file_path, str | Path) or not str(file_path):
        raise ImageReadError(
            f"{name} has no image: no blob and no path in its metadata field '{file_path_meta_field}'."
        )
    path = _resolve(file_path, root_path, name=name)
    name = f"{name} ('{file_path}')"
    if path.suffix.lower() == ".pdf" or document.meta.get("mime_type") == _PDF:
        return _open_pdf_page(ByteStream(_read(path, name)), document.meta.get("page_number"), name=name)
    return _open_bytes(_read(path, name), name=name)


def load_document_images(
    documents: Sequence[Document], *, file_path_meta_field: str = "file_path", root_path: str = ""
) -> list[Image.Image | ImageReadError]:
    """
    Read the images of many documents, several at a time.

    :param documents: The documents.
    :param file_path_meta_field: The metadata field that holds the path of an image or PDF.
    :param root_path: The folder that relative paths start from and that no path may leave; empty for no such limit.
    :returns: For each document, in order, its image, or the error that says why there is none.
    """

    def load(document: Document) -> Image.Image | ImageReadError:
        try:
            return load_document_image(document, file_path_meta_field=file_path_meta_field, root_path=root_path)
        except ImageReadError as error:
            return error

    with ThreadPoolExecutor(max_workers=_LOADING_THREADS) as pool:
        return list(pool.map(load, documents))


def find_images(folder: str | Path) -> list[Path]:
    """
    The image files under a folder and its subfolders, told by their names, in order.

    :param folder: The folder.
    :returns: Their paths; whether they can be read is another matter. HEIC files, as phones make them, are among them,
        so that they are reported and do not vanish.
    :raises FileNotFoundError: If there is no such folder.
    :raises ValueError: If it holds no image.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder '{folder}'.")
    suffixes = _SUFFIXES | _HEIC_SUFFIXES
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in suffixes and not path.is_dir())
    if not paths:
        raise ValueError(f"The folder '{folder}' holds no images, such as .jpg or .png files.")
    return paths


def _resolve(file_path: str | Path, root_path: str, *, name: str) -> Path:
    """The file a path means. Links are followed before the check, so that none can lead out of the root."""
    try:
        path = Path(root_path, file_path).resolve() if root_path else Path(file_path)
        if root_path and not path.is_relative_to(Path(root_path).resolve()):
            raise ImageReadError(f"{name} names the path '{file_path}', which lies outside the root '{root_path}'.")
        if not path.is_file():
            raise ImageReadError(f"{name} names the path '{file_path}', where there is no file ('{path}').")
    except (OSError, RuntimeError) as error:  # a name too long for the file system, a loop of links
        raise ImageReadError(f"{name} names a path that cannot be followed: {_reason(error)}.") from error
    return path


def _read(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ImageReadError(f"{name} cannot be read: {_reason(error)}.") from error


def _open_bytes(data: bytes, *, name: str) -> Image.Image:
    if not data:
        raise ImageReadError(f"{name} cannot be read: it is empty.")
    try:
        image = Image.open(BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        is_heic = data[4:8] == b"ftyp" and data[8:12] in _HEIC_BRANDS
        reason = "HEIC is not read; convert it to JPEG" if is_heic else "it is not an image of a known format"
        raise ImageReadError(f"{name} cannot be read: {reason}.") from error
    except Exception as error:  # Pillow's format readers raise what they please on damaged headers
        raise ImageReadError(f"{name} cannot be read: {_reason(error)}.") from error
    return _convert(image, name=name)


def _open_pdf_page(pdf: ByteStream, page_number: Any, *, name: str) -> Image.Image:
    if not isinstance(page_number, int) or page_number < 1:
        raise ImageReadError(
            f"{name} comes from a PDF and needs the page in its metadata field 'page_number', counted from 1; "
            f"it has {page_number!r}."
        )
    with _pdfium_lock:
        pages = _convert_pdf_to_images(bytestream=pdf, page_range=[page_number])
    if not pages:
        raise ImageReadError(f"{name} cannot be read: its PDF is damaged or has no page {page_number}.")
    page = pages[0][1]
    assert isinstance(page, Image.Image)  # text is returned only where `return_base64` asks for it
    return _convert(page, name=name)


def _convert(image: Image.Image, *, name: str) -> Image.Image:
    try:
        image.draft(None, _bounded(image.size))  # a JPEG that is too large is decoded at a fraction of its size
        rgb = _to_rgb(ImageOps.exif_transpose(image))
    except Exception as error:  # Pillow's format readers raise what they please on damaged data
        raise ImageReadError(f"{name} cannot be read: {_reason(error)}.") from error
    rgb.thumbnail(_bounded(rgb.size))
    return rgb


def _bounded(size: tuple[int, int]) -> tuple[int, int]:
    """The size with the same sides' ratio and at most `MAX_PIXELS` pixels."""
    scale = min(1.0, math.sqrt(MAX_PIXELS / (size[0] * size[1])))
    return max(1, int(size[0] * scale)), max(1, int(size[1] * scale))


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        levels = _to_eight_bits(np.asarray(image, dtype=np.float64), full_scale=image.mode.startswith("I;16"))
        return Image.fromarray(levels).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.copy() if image.mode == "RGB" else image.convert("RGB")


def _to_eight_bits(values: np.ndarray, *, full_scale: bool) -> np.ndarray:
    """Grey values of 16 bits keep their scale; 32-bit integers and floats, which have none, are stretched [choice]."""
    finite = values[np.isfinite(values)]
    low, high = (0.0, 65535.0) if full_scale or not finite.size else (float(finite.min()), float(finite.max()))
    filled = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    return np.rint((filled - low) / ((high - low) or 1.0) * 255).astype(np.uint8)


def _reason(error: BaseException) -> str:
    text = str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    return (text or type(error).__name__).strip().rstrip(".")
