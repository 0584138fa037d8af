"""Cleaning of text and JSON that must survive every database and wire format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

NUL_SYMBOL = "\N{SYMBOL FOR NULL}"
MAX_JSON_DEPTH = 64


def clean_text(text: str) -> str:
    """Return ``text`` with everything replaced that a database may refuse.

    A NUL becomes U+2400 (the symbol for it) and a lone surrogate U+FFFD, both visible. Halves of
    a surrogate pair that arrived in two pieces are joined again. Other text comes back unchanged,
    as the same object.
    """
    if "\0" in text:
        text = text.replace("\0", NUL_SYMBOL)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: object, *, _depth: int = 0) -> JSON:
    """Return ``value`` as JSON data that every database stores: see :func:`clean_text`.

    Tuples and sets become lists, other mappings become dicts, keys become strings, NaN and the
    infinities become their names, and what is not JSON becomes its ``str()``. Nesting deeper than
    64 levels is cut with a visible mark.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if _depth >= MAX_JSON_DEPTH:
        return "[nested too deep]"
    if isinstance(value, Mapping):
        return {clean_text(str(k)): clean_json(v, _depth=_depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean_json(v, _depth=_depth + 1) for v in value]
    return clean_text(str(value))
