"""A rich console that no text and no terminal can break."""

from __future__ import annotations

from typing import IO, Any, cast

from rich.console import Console
from rich.text import Text

from om_django.core.text import clean_text

#: What a terminal without UTF-8 shows instead.
PLAIN = str.maketrans(
    {
        "🔴": "!!", "🟡": "!", "🟢": ".", "✅": "x",
        "█": "#", "░": ":", "┄": "-", "┤": "|", "└": "+", "─": "-", "│": "|",
        "●": "o", "◆": "*", "→": "->", "×": "x", "…": "...", "–": "-", "—": "-", "≤": "<=",
        "‘": "'", "’": "'", "“": '"', "”": '"', "━": "-", "╸": "-", "╺": "-",
    }
)  # fmt: skip
_CONTROLS = dict.fromkeys((*range(32), 127, *range(128, 160)), "�")
_CONTROLS.pop(ord("\n"))
_CONTROLS[ord("\t")] = " "
_CONTROLS.pop(ord("\r"))


class SafeStream:
    """A text stream that replaces what the encoding of the real one cannot say."""

    def __init__(self, stream: Any) -> None:
        # Django's wrapper would end every piece of a progress bar with a new line.
        self._stream = getattr(stream, "_out", stream)
        self.encoding = getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if not self.encoding.lower().replace("-", "").startswith("utf8"):
            text = text.translate(PLAIN)
        self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        flush = getattr(self._stream, "flush", None)
        if flush is not None:
            flush()

    def isatty(self) -> bool:
        isatty = getattr(self._stream, "isatty", None)
        return bool(isatty and isatty())

    def fileno(self) -> int:
        return int(self._stream.fileno())


def make_console(stream: Any, *, color: bool | None = None) -> Console:
    """Return a console that writes to ``stream``; ``color`` ``None`` asks the terminal."""
    return Console(
        file=cast("IO[str]", SafeStream(stream)),
        force_terminal=True if color else None,
        no_color=True if color is False else None,
        highlight=False,
        emoji=False,
    )


def said(text: str, style: str = "") -> Text:
    """Return text of a conversation for printing: never markup, never a control sequence."""
    return Text(clean_text(text).replace("\r\n", "\n").translate(_CONTROLS), style=style)
