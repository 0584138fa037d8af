from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from om_django.core.images import (
    byte_size,
    file_tokens,
    image_size,
    image_tokens,
    is_image,
    media_item,
    media_type_of,
    provider_family,
)
from om_django.core.messages import FilePart, ImagePart

KIB, MIB = 1024, 1024 * 1024


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n\0\0\0\x0d" + header + struct.pack(">I", zlib.crc32(header))


def jpeg(width: int, height: int, *, profile: int = 0, marker: int = 0xC0) -> bytes:
    segments = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    while profile > 0:
        length = min(profile, 65_000)
        segments += b"\xff\xe2" + struct.pack(">H", length + 2) + b"\xff" * length
        profile -= length
    frame = struct.pack(">HBHH", 17, 8, height, width)
    return b"\xff\xd8" + segments + b"\xff\xff" + bytes([marker]) + frame + bytes(12)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, width, height) + bytes(20)


def bmp_core(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<IHH", 12, width, height) + bytes(20)


def webp_lossy(width: int, height: int) -> bytes:
    body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + body + bytes(20)


def webp_lossless(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", bits) + bytes(20)


def webp_extended(width: int, height: int) -> bytes:
    sides = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + sides + bytes(20)


@pytest.mark.parametrize(
    ("provider", "model", "family"),
    [
        ("", "", "openai"),
        ("openai", "gpt-5-mini", "openai"),
        ("azure", "my-deployment", "openai"),
        ("azure-openai", "gpt-4o", "openai"),
        ("google", "gemini-2.5-flash", "google"),
        ("google.vertex", "gemini-3-pro", "google"),
        ("vertex", "", "google"),
        ("vertex_ai", "claude-sonnet-4", "anthropic"),
        ("google.vertex.anthropic", "", "anthropic"),
        ("gemini", "", "google"),
        ("", "models/gemini-3-flash", "google"),
        ("", "google/gemma-3", "google"),
        ("Anthropic", "claude-sonnet-4", "anthropic"),
        ("amazon-bedrock", "us.anthropic.claude-3-haiku", "anthropic"),
        ("bedrock anthropic", "", "anthropic"),
        ("openrouter", "anthropic/claude-opus-4", "anthropic"),
        ("openrouter", "google/gemini-3-pro", "google"),
        ("openrouter", "openai/gpt-4o", "openai"),
        ("google", "gpt-4o", "openai"),
        ("mistral", "pixtral-12b", "openai"),
    ],
)
def test_provider_family(provider: str, model: str, family: str) -> None:
    assert provider_family(provider, model) == family


@pytest.mark.parametrize(
    ("model", "low", "one_tile", "unknown"),
    [
        ("", 85, 85 + 170, 85 + 4 * 170),
        ("gpt-4o", 85, 85 + 170, 85 + 4 * 170),
        ("gpt-4.1-mini", 85, 85 + 170, 85 + 4 * 170),
        ("gpt-5", 70, 70 + 140, 70 + 4 * 140),
        ("openai/GPT-5-mini", 70, 70 + 140, 70 + 4 * 140),
        ("gpt-4o-mini", 2833, 2833 + 5667, 2833 + 5667),
        ("gpt-4o-mini-2024-07-18", 2833, 2833 + 5667, 2833 + 5667),
        ("o1", 75, 75 + 150, 75 + 4 * 150),
        ("o3-pro", 75, 75 + 150, 75 + 4 * 150),
        ("computer-use-preview", 65, 65 + 129, 65 + 4 * 129),
    ],
)
def test_openai_models(model: str, low: int, one_tile: int, unknown: int) -> None:
    url = "https://example.com/a"
    assert image_tokens(ImagePart(url=url, detail="low"), "openai", model) == low
    sized = ImagePart(url=url, detail="high", width=512, height=512)
    assert image_tokens(sized, "openai", model) == one_tile
    assert image_tokens(ImagePart(url=url, detail="high"), "openai", model) == unknown
    assert image_tokens(ImagePart(url=url), "openai", model) == unknown


@pytest.mark.parametrize(
    ("width", "height", "tiles"),
    [
        (512, 512, 1),
        (513, 512, 2),
        (1024, 1024, 4),  # to 768 x 768
        (2048, 4096, 6),  # to 1024 x 2048, to 768 x 1536
        (4096, 512, 4),  # to 2048 x 256
        (100, 100, 1),  # never larger
        (30_000, 1, 4),
    ],
)
def test_openai_tiles(width: int, height: int, tiles: int) -> None:
    part = ImagePart(url="https://e.com/a", width=width, height=height, detail="high")
    assert image_tokens(part) == 85 + tiles * 170


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (ImagePart(url="https://e.com/a", width=768, height=768), 85),
        (ImagePart(url="https://e.com/a", width=769, height=10), 85 + 2 * 170),
        (ImagePart(url="https://e.com/a", size=MIB), 85),
        (ImagePart(url="https://e.com/a", size=MIB + 1), 85 + 4 * 170),
        (ImagePart(url="https://e.com/a", size=512 * KIB, detail="high"), 85 + 170),
        (ImagePart(url="https://e.com/a", size=2 * MIB, detail="high"), 85 + 4 * 170),
        (ImagePart(url="https://e.com/a", size=4 * MIB, detail="high"), 85 + 6 * 170),
        (ImagePart(url="https://e.com/a", size=4 * MIB + 1, detail="high"), 85 + 8 * 170),
        (ImagePart(url="https://e.com/a", detail="original"), 85 + 4 * 170),
        (ImagePart(url="https://e.com/a", extra={"imageDetail": "low"}), 85),
        (
            ImagePart(
                url="https://e.com/a", extra={"providerOptions": {"openai": {"detail": "low"}}}
            ),
            85,
        ),
        (
            ImagePart(
                url="https://e.com/a",
                extra={"providerMetadata": {"mastra": {"imageDetail": "low"}}},
            ),
            85,
        ),
        (ImagePart(url="https://e.com/a", extra={"imageWidth": 9, "imageHeight": 9}), 85),
    ],
)
def test_openai_detail(part: ImagePart, tokens: int) -> None:
    assert image_tokens(part, "openai", "gpt-4o") == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(10, 10, 258), (768, 768, 258), (769, 768, 516), (1600, 1600, 9 * 258), (None, None, 258)],
)
def test_google_tiles(width: int | None, height: int | None, tokens: int) -> None:
    part = ImagePart(url="https://e.com/a", width=width, height=height)
    assert image_tokens(part, "google", "gemini-2.5-flash") == tokens


@pytest.mark.parametrize(
    ("resolution", "tokens"),
    [
        ("low", 280),
        ("medium", 560),
        ("high", 1120),
        ("ultra_high", 2240),
        ("MEDIA_RESOLUTION_LOW", 280),
        ("MEDIA_RESOLUTION_UNSPECIFIED", 1120),
        (None, 1120),
    ],
)
@pytest.mark.parametrize("outer", [None, "providerOptions", "providerMetadata"])
def test_gemini_3_resolution(resolution: str | None, tokens: int, outer: str | None) -> None:
    option = {"mediaResolution": resolution}
    extra = option if outer is None else {outer: {"google": option}}
    part = ImagePart(url="https://e.com/a", width=5000, height=5000, extra=extra)
    assert image_tokens(part, "google.vertex", "gemini-3-pro-preview") == tokens


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (ImagePart(url="https://e.com/a", width=1, height=1), 1),
        (ImagePart(url="https://e.com/a", width=750, height=1000), 1000),
        (ImagePart(url="https://e.com/a", width=3136, height=1568), 1640),  # 1568 x 784
        (ImagePart(url="https://e.com/a", size=512 * KIB), 341),
        (ImagePart(url="https://e.com/a", size=2 * MIB), 1366),
        (ImagePart(url="https://e.com/a", size=4 * MIB), 2048),
        (ImagePart(url="https://e.com/a", size=9 * MIB), 2731),
        (ImagePart(url="https://e.com/a"), 1600),
    ],
)
def test_anthropic(part: ImagePart, tokens: int) -> None:
    assert image_tokens(part, "anthropic", "claude-sonnet-4") == tokens


@pytest.mark.parametrize(
    ("provider", "size", "tokens"),
    [
        ("google", 100, 258),
        ("google", 20_001, 1001),
        ("anthropic", 100, 1500),
        ("anthropic", 9001, 3001),
        ("openai", 100, 500),
        ("openai", 9001, 2251),
        ("somebody", 9001, 2251),
    ],
)
def test_pdf(provider: str, size: int, tokens: int) -> None:
    part = FilePart(url="https://e.com/a", media_type="Application/PDF; v=1", size=size)
    assert file_tokens(part, len, provider) == tokens


def test_other_files_count_a_quarter_of_their_bytes() -> None:
    assert file_tokens(FilePart(data="", size=0, media_type="text/csv"), len) == 1
    assert file_tokens(FilePart(data=b64(bytes(4001)), media_type="text/csv"), len) == 1001
    uri = "data:text/plain;base64," + b64(bytes(400))
    assert file_tokens(FilePart(url=uri), len, "anthropic") == 100
    assert file_tokens(FilePart(url="data:text/plain,hello%20you"), len) == 3


def test_file_without_size_counts_its_description() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return 7

    part = FilePart(url="https://e.com/x/r%C3%A9port.csv?sig=1", media_type="text/csv")
    assert file_tokens(part, count) == 7
    assert file_tokens(FilePart(file_id="file-1"), count) == 7
    assert file_tokens(FilePart(data="storage://bucket/key/object"), count) == 7
    assert seen == [
        '{"type":"file","mimeType":"text/csv","filename":"réport.csv"}',
        '{"type":"file","mimeType":null,"filename":null}',
        '{"type":"file","mimeType":null,"filename":null}',
    ]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (ImagePart(url="https://e.com/a"), True),
        (FilePart(url="https://e.com/a", media_type="IMAGE/PNG"), True),
        (FilePart(url="data:image/svg+xml,<svg/>"), True),
        (FilePart(url="https://e.com/a/Photo.JPEG?size=1#x"), True),
        (FilePart(file_id="f", filename="scan.heic"), True),
        (FilePart(url="https://e.com/a.png.zip"), False),
        (FilePart(url="https://e.com/?file=a.png"), False),
        (FilePart(url="https://[broken/a.png"), False),
        (FilePart(data="aGVsbG8=", media_type="text/plain"), False),
    ],
)
def test_is_image(part: FilePart, expected: bool) -> None:
    assert is_image(part) is expected


@pytest.mark.parametrize(
    "part",
    [
        FilePart(url="https://e.com/a", media_type="application/pdf"),
        FilePart(url="https://e.com/Report.PDF?x=1"),
        FilePart(file_id="file-1", filename="a.pdf"),
    ],
)
def test_a_pdf_of_unknown_size_counts_in_thousands(part: FilePart) -> None:
    assert file_tokens(part, len) == 4_000


def test_image_like_file_counts_as_image() -> None:
    part = FilePart(data=b64(png(1024, 1024) + bytes(100_000)), media_type="image/png")
    assert file_tokens(part, len, "openai", "gpt-4o") == 85 + 4 * 170
    assert file_tokens(part, len, "google", "gemini-1.5-pro") == 4 * 258


MAKERS = [png, jpeg, gif, bmp, bmp_core, webp_lossy, webp_lossless, webp_extended]


@pytest.mark.parametrize("make", MAKERS)
def test_image_size_from_bytes(make: object) -> None:
    data = b64(make(1234, 567) + bytes(50))  # type: ignore[operator]
    assert image_size(ImagePart(data=data)) == (1234, 567)
    assert image_size(ImagePart(data="data:image/x;base64," + data)) == (1234, 567)
    assert image_size(FilePart(url="data:image/x;base64," + data)) == (1234, 567)
    assert image_size(ImagePart(data=data.replace("+", "-").replace("/", "_"))) == (1234, 567)
    wrapped = "\n".join(data[i : i + 16] for i in range(0, len(data), 16))
    assert image_size(ImagePart(data=wrapped)) == (1234, 567)


def test_jpeg_behind_a_profile_and_progressive() -> None:
    assert image_size(ImagePart(data=b64(jpeg(30, 20, profile=200_000, marker=0xC2)))) == (30, 20)
    assert image_size(ImagePart(data=b64(jpeg(30, 20, profile=300_000)))) is None


def test_given_size_wins_and_false_sizes_are_unknown() -> None:
    data = b64(png(10, 20))
    assert image_size(ImagePart(data=data, width=5, height=6)) == (5, 6)
    assert image_size(ImagePart(data=data, width=0, height=6)) == (10, 20)
    assert image_size(ImagePart(data=b64(png(2**31, 2**31)))) is None
    assert image_size(ImagePart(data=b64(png(0, 5)))) is None
    assert image_size(ImagePart(data=b64(bmp(7, -9)))) == (7, 9)
    assert image_size(ImagePart(url="https://e.com/a.png")) is None


def test_only_a_prefix_of_the_data_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    import binascii

    decoded: list[int] = []

    def spy(text: str) -> bytes:
        decoded.append(len(text))
        return a2b(text)

    a2b = binascii.a2b_base64
    monkeypatch.setattr(binascii, "a2b_base64", spy)
    assert image_size(ImagePart(data=b64(png(10, 20) + bytes(2 * MIB)))) == (10, 20)
    assert image_size(ImagePart(data=b64(b"\xff\xd8\xff" + bytes([0xFF]) * 2 * MIB))) is None
    assert max(decoded) <= 256 * KIB * 4 // 3 + 8
    assert decoded[0] < 100


def test_byte_size() -> None:
    assert byte_size(ImagePart(data=b64(b"12345"))) == 5
    assert byte_size(ImagePart(data="data:image/png;base64," + b64(b"1234"))) == 4
    assert byte_size(ImagePart(data=b64(b"12345"), size=99)) == 99
    assert byte_size(ImagePart(data=b64(b"12345"), size=-1)) == 5
    assert byte_size(ImagePart(data="http://example.com/a")) is None
    assert byte_size(ImagePart(file_id="f")) is None
    assert media_type_of(FilePart(data="data:Application/PDF;base64,AAAA")) == "application/pdf"
    assert media_type_of(FilePart(data="data:,x")) is None


PNG = b64(png(1024, 1024))


@pytest.mark.parametrize(
    "item",
    [
        {"type": "image", "data": PNG, "mimeType": "image/png"},  # MCP
        {"type": "media", "data": PNG, "mediaType": "image/png"},  # AI SDK
        {"type": "image-data", "data": PNG, "mediaType": "image/png"},
        {"type": "file-data", "data": PNG, "mediaType": "image/png"},
        {"type": "image-url", "url": "data:image/png;base64," + PNG},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},  # OpenAI
        {"type": "input_image", "image_url": "data:image/png;base64," + PNG},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "image": PNG},
        {"type": "resource", "resource": {"uri": "a://b", "blob": PNG, "mimeType": "image/png"}},
        {"type": "image-url", "url": "https://e.com/a", "width": 1024, "height": 1024},
        {"type": "image", "image": "https://e.com/a", "width": 1024, "height": 1024},
    ],
)
def test_media_item_of_many_formats(item: dict[str, object]) -> None:
    part = media_item(item)
    assert part is not None
    assert file_tokens(part, len, "google", "gemini-2.0-flash") == 4 * 258  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "item",
    [
        "text",
        None,
        {"type": "text", "text": "x", "data": PNG},
        {"type": "image"},
        {"type": ["image"], "data": PNG},
        {"type": "resource", "resource": {"uri": "a://b", "text": "words"}},
        {"data": PNG},
    ],
)
def test_media_item_of_anything_else(item: object) -> None:
    assert media_item(item) is None


def test_media_item_of_audio_and_options() -> None:
    part = media_item({"type": "input_audio", "input_audio": {"data": b64(bytes(400))}})
    assert isinstance(part, FilePart)
    assert file_tokens(part, len) == 100
    item = {"type": "image_url", "image_url": {"url": "https://e.com/a", "detail": "low"}}
    part = media_item(item)
    assert isinstance(part, ImagePart)
    assert image_tokens(part) == 85


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
heads = st.sampled_from([b"", b"\xff\xd8", *(make(300, 200) for make in MAKERS)])
contents = st.text() | st.builds(
    lambda h, t, n: b64((h + t)[:n]), heads, st.binary(), st.integers(0, 90)
)


@given(
    content=contents,
    uri=st.sampled_from(["", "data:image/png;base64,", "data:application/pdf;base64,", "data:,"]),
    width=st.none() | st.integers() | st.floats(),
    height=st.none() | st.integers() | st.floats(),
    size=st.none() | st.integers(),
    detail=st.none() | st.text(),
    provider=st.sampled_from(["", "openai", "google", "anthropic"]) | st.text(),
    model=st.sampled_from(["", "gemini-3", "gpt-5", "gemini-99999999999999999999"]) | st.text(),
    extra=st.dictionaries(
        st.sampled_from(["imageWidth", "detail", "providerOptions", "mediaResolution"]), json_values
    ),
)
def test_never_raises_never_negative(
    content, uri, width, height, size, detail, provider, model, extra
) -> None:  # type: ignore[no-untyped-def]
    image = ImagePart(
        data=uri + content, width=width, height=height, size=size, detail=detail, extra=extra
    )
    file = FilePart(url=uri + content, size=size, extra=extra)
    assert image_tokens(image, provider, model) >= 0
    assert file_tokens(file, len, provider, model) >= 0


@given(json_values)
def test_media_item_never_raises(value: object) -> None:
    for item in (
        value,
        {"type": "image", "data": value, "width": value},
        {"type": "file", "file": value},
    ):
        part = media_item(item)
        assert part is None or image_tokens(part) >= 0
