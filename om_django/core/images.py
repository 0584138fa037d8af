"""Tokens of pictures and files, by provider.

The formulas are those of the reference system; the sizes come from the part itself or from the
first bytes of its data. Nothing is ever fetched.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from .messages import FilePart, ImagePart, MediaPart, dump_json

Family = Literal["openai", "google", "anthropic"]
Detail = Literal["low", "high", "auto"]

KIB, MIB = 1024, 1024 * 1024
# A JPEG may carry a colour profile and a preview before its size.
_PREFIX_BYTES = 256 * KIB
# Headers lie; no provider takes a longer side.
_MAX_SIDE = 30_000

_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|webp|gif|bmp|tiff?|heic|heif|avif)$", re.IGNORECASE)
_DATA_URI = re.compile(r"data:([^;,]*)([^,]*),", re.IGNORECASE)
_BASE64_START = re.compile(r"[A-Za-z0-9+/_=\s-]+")
_URL_SAFE = str.maketrans("-_", "+/")


def provider_family(provider: str = "", model: str = "") -> Family:
    """Return whose formulas count: the model's name decides, then the provider's, else OpenAI.

    Names may be dotted, combined or hosted: ``google.vertex``, ``amazon-bedrock`` with
    ``anthropic.claude-...``, ``openrouter`` with ``google/gemini-...``, ``azure``.
    """
    model, provider = model.lower(), provider.lower()
    for name in (model, provider):
        if "claude" in name or "anthropic" in name:
            return "anthropic"
        if "gemini" in name:
            return "google"
        if re.match(r"(?:.*[/.])?(?:gpt-|chatgpt-|o[134](?:-|$))", name):
            return "openai"
    hosted_by_google = "google" in provider or "vertex" in provider
    return "google" if hosted_by_google or model.startswith("google/") else "openai"


def image_tokens(part: MediaPart, provider: str = "", model: str = "") -> int:
    """Return the tokens of a picture (reference formulas; detail and size as far as known)."""
    family = provider_family(provider, model)
    name = model.lower().rpartition("/")[2]
    size = image_size(part)
    if family == "google":
        return _google_image(part, name, size)
    if family == "anthropic":
        return _anthropic_image(size, byte_size(part))
    return _openai_image(part, name, size, byte_size(part))


UNKNOWN_PDF_TOKENS = 4_000


def file_tokens(
    part: FilePart, count: Callable[[str], int], provider: str = "", model: str = ""
) -> int:
    """Return the tokens of a file by its bytes; without a size, those of its description.

    A PDF of unknown size counts as one of about a dozen pages: nearer to the truth than its name.
    ``count`` counts text. A file that is a picture counts as one (reference formulas).
    """
    if is_image(part):
        return image_tokens(part, provider, model)
    size = byte_size(part)
    media_type = media_type_of(part)
    if size is None:
        name = (_filename(part) or "").lower()
        if media_type == "application/pdf" or (media_type is None and name.endswith(".pdf")):
            return UNKNOWN_PDF_TOKENS
        description = {"type": part.type, "mimeType": media_type, "filename": _filename(part)}
        return count(dump_json(description))
    if media_type == "application/pdf":
        least, per_token = {"google": (258, 20), "anthropic": (1500, 3), "openai": (500, 4)}[
            provider_family(provider, model)
        ]
        return max(least, math.ceil(size / per_token))
    return max(1, math.ceil(size / 4))


def is_image(part: MediaPart) -> bool:
    """Tell whether a part is a picture: by its class, media type, data URI, file name or URL."""
    if isinstance(part, ImagePart):
        return True
    media_type = media_type_of(part)
    if media_type is not None and media_type.startswith("image/"):
        return True
    return any(
        _IMAGE_NAME.search(name) is not None for name in (part.filename, _url_path(part)) if name
    )


def media_type_of(part: MediaPart) -> str | None:
    """Return the media type in lower case without parameters, where the part tells it."""
    if part.media_type:
        return part.media_type.partition(";")[0].strip().lower() or None
    uri = _DATA_URI.match(_content(part))
    return (uri.group(1).strip().lower() or None) if uri else None


def byte_size(part: MediaPart) -> int | None:
    """Return the bytes of a part's content, where they are given or present as base64."""
    if isinstance(part.size, int) and not isinstance(part.size, bool) and part.size >= 0:
        return part.size
    content = _content(part)
    uri = _DATA_URI.match(content)
    if uri is not None and "base64" not in uri.group(2).lower():
        return len(content) - uri.end()
    start = uri.end() if uri is not None else 0
    length = len(content) - start
    if length <= 0 or not _BASE64_START.fullmatch(content, start, start + 64):
        return None
    padding = content[-2:].count("=")
    return max(0, length * 3 // 4 - padding)


def image_size(part: MediaPart) -> tuple[int, int] | None:
    """Return width and height in pixels, as given or as the first bytes of the data tell."""
    given = _side(part, "width"), _side(part, "height")
    if given[0] is not None and given[1] is not None:
        return given[0], given[1]
    content = _content(part)
    uri = _DATA_URI.match(content)
    start = uri.end() if uri is not None else 0
    # Every format but JPEG tells its size within 30 bytes.
    head = _decode(content, start, 64)
    if head.startswith(b"\xff\xd8"):
        head = _decode(content, start, _PREFIX_BYTES)
    size = _measure(head)
    if size is None or not all(0 < side <= _MAX_SIDE for side in size):
        return None
    return size


_CONTENT_TYPES = (
    *("image", "image-data", "image-url", "image_url", "image-file-id", "input_image"),
    *("file", "file-data", "file-url", "file-id", "input_file", "document", "media", "resource"),
    *("audio", "audio-data", "input_audio", "video"),
)
_URL_KEYS = ("url", "image_url", "uri", "file_url", "fileUrl")
_DATA_KEYS = ("data", "image", "file_data", "fileData", "blob", "base64", "file", "audio")
_ID_KEYS = ("fileId", "file_id")
_TYPE_KEYS = ("mediaType", "mimeType", "media_type", "mime_type")
_NESTED_KEYS = ("image_url", "source", "resource", "input_audio", "file", "image", "audio")


def media_item(item: object) -> ImagePart | FilePart | None:
    """Return the attachment that a content item of a tool result is, or ``None``.

    Knows the items of the AI SDK, of MCP, OpenAI and Anthropic.
    """
    if not isinstance(item, Mapping) or item.get("type") not in _CONTENT_TYPES:
        return None
    kind = str(item["type"])
    layers = [item, *(item[key] for key in _NESTED_KEYS if isinstance(item.get(key), Mapping))]
    url, data = _first(layers, _URL_KEYS), _first(layers, _DATA_KEYS)
    file_id = _first(layers, _ID_KEYS)
    if url is None and data is None and file_id is None:
        return None
    if kind == "resource" and data is None:
        return None
    if data is not None and re.match(r"https?://", data, re.IGNORECASE):
        url, data = data, None
    estimate = item.get("token_estimate")
    known: dict[str, Any] = {
        "url": url if data is None else None,
        "data": data,
        "file_id": file_id if data is None and url is None else None,
        "media_type": _first(layers, _TYPE_KEYS),
        "filename": _first(layers, ("filename", "name")),
        "token_estimate": estimate if isinstance(estimate, int | float) else None,
        "extra": item,
    }
    if "image" not in kind:
        return FilePart(**known)
    return ImagePart(
        width=item.get("width"),
        height=item.get("height"),
        detail=_first(layers, ("detail",)),
        **known,
    )


def _first(layers: list[Mapping[str, Any]], keys: tuple[str, ...]) -> str | None:
    for layer in layers:
        for key in keys:
            value = layer.get(key)
            if isinstance(value, str) and value:
                return value
    return None


def _content(part: MediaPart) -> str:
    """Return base64 or a data URI, "" where the part only refers to its content."""
    if part.data:
        return part.data
    return part.url if part.url and part.url[:5].lower() == "data:" else ""


def _url_path(part: MediaPart) -> str:
    if not part.url or part.url[:5].lower() == "data:":
        return ""
    try:
        return unquote(urlsplit(part.url).path)
    except ValueError:
        return ""


def _filename(part: MediaPart) -> str | None:
    return part.filename or _url_path(part).rpartition("/")[2] or None


def _options(part: MediaPart, *providers: str) -> Iterator[Mapping[str, Any]]:
    """Yield the places where an option of a part may stand, nearest first."""
    yield part.extra
    for outer in ("providerOptions", "provider_options", "providerMetadata", "provider_metadata"):
        options = part.extra.get(outer)
        for provider in providers:
            inner = options.get(provider) if isinstance(options, Mapping) else None
            if isinstance(inner, Mapping):
                yield inner


def _detail(part: MediaPart) -> Detail:
    found = [getattr(part, "detail", None)]
    for options in _options(part, "openai", "mastra"):
        found += [options.get("detail"), options.get("imageDetail")]
    for value in found:
        if isinstance(value, str) and value.lower() in ("low", "high"):
            return "low" if value.lower() == "low" else "high"
    return "auto"


def _openai_factors(model: str) -> tuple[int, int, int]:
    """Return the tokens of a picture, those of each tile, and the tiles when nothing is known."""
    if "computer-use" in model:
        return 65, 129, 4
    if model.startswith("gpt-4o-mini"):
        return 2833, 5667, 1
    if model.startswith("gpt-5"):
        return 70, 140, 4
    if model.startswith(("o1", "o3")):
        return 75, 150, 4
    return 85, 170, 4


def _openai_image(
    part: MediaPart, model: str, size: tuple[int, int] | None, weight: int | None
) -> int:
    base, tile, unknown = _openai_factors(model)
    detail = _detail(part)
    if detail == "auto":
        if size is not None:
            detail = "high" if max(size) > 768 else "low"
        else:
            detail = "low" if weight is not None and weight <= MIB else "high"
    if detail == "low":
        return base
    if size is not None:
        tiles = _openai_tiles(*size)
    elif weight is not None:
        tiles = _by_weight(weight, (1, 4, 6, 8))
    else:
        tiles = unknown
    return base + tiles * tile


def _openai_tiles(width: float, height: float) -> int:
    scale = min(1.0, 2048 / max(width, height))
    width, height = width * scale, height * scale
    scale = min(1.0, 768 / min(width, height))
    across, down = (max(1, math.ceil(round(side * scale) / 512)) for side in (width, height))
    return across * down


_RESOLUTIONS = {"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240}


def _google_image(part: MediaPart, model: str, size: tuple[int, int] | None) -> int:
    generation = re.match(r"gemini-(\d+)", model)
    if generation is not None and int(generation.group(1)[:4]) >= 3:
        for options in _options(part, "google", "vertex", "mastra"):
            value = options.get("mediaResolution", options.get("media_resolution"))
            if isinstance(value, str):
                level = value.lower().removeprefix("media_resolution_")
                return _RESOLUTIONS.get(level, 1120)
        return 1120
    if size is None:
        return 258
    return 258 * max(1, math.ceil(size[0] / 768) * math.ceil(size[1] / 768))


def _anthropic_image(size: tuple[int, int] | None, weight: int | None) -> int:
    if size is not None:
        scale = min(1.0, 1568 / max(size))
        return max(1, math.ceil(size[0] * scale * (size[1] * scale) / 750))
    return 1600 if weight is None else _by_weight(weight, (341, 1366, 2048, 2731))


def _by_weight(weight: int, values: tuple[int, int, int, int]) -> int:
    for limit, value in zip((512 * KIB, 2 * MIB, 4 * MIB), values, strict=False):
        if weight <= limit:
            return value
    return values[-1]


def _side(part: MediaPart, name: str) -> int | None:
    for value in (getattr(part, name, None), part.extra.get(f"image{name.title()}")):
        if isinstance(value, int | float) and 1 <= value <= _MAX_SIDE:
            return int(value)
    return None


def _decode(content: str, start: int, size: int) -> bytes:
    """Return about the first ``size`` bytes of base64, b"" if it is none."""
    text = "".join(content[start : start + size * 4 // 3 + 4].split()).translate(_URL_SAFE)
    text = text.rstrip("=")
    if len(text) % 4 == 1:
        text = text[:-1]
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def _measure(head: bytes) -> tuple[int, int] | None:
    """Return the size that the first bytes of a PNG, GIF, BMP, WebP or JPEG tell."""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if head.startswith((b"GIF87a", b"GIF89a")) and len(head) >= 10:
        return _little(head, 6, 2), _little(head, 8, 2)
    if head.startswith(b"BM") and len(head) >= 26:
        if _little(head, 14, 4) == 12:
            return _little(head, 18, 2), _little(head, 20, 2)
        # A negative height means rows from top to bottom.
        return _little(head, 18, 4), abs(int.from_bytes(head[22:26], "little", signed=True))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and len(head) >= 30:
        return _measure_webp(head)
    return _measure_jpeg(head) if head.startswith(b"\xff\xd8") else None


def _little(data: bytes, start: int, length: int) -> int:
    return int.from_bytes(data[start : start + length], "little")


def _measure_webp(head: bytes) -> tuple[int, int] | None:
    if head[12:16] == b"VP8X":
        return 1 + _little(head, 24, 3), 1 + _little(head, 27, 3)
    if head[12:16] == b"VP8L":
        bits = _little(head, 21, 4)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if head[12:16] == b"VP8 ":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    return None


def _measure_jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head):
        marker = head[at + 1]
        if head[at] != 0xFF:
            return None
        if marker == 0xFF:  # filling
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # no content
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height = int.from_bytes(head[at + 5 : at + 7], "big")
            return int.from_bytes(head[at + 7 : at + 9], "big"), height
        else:
            at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return None
