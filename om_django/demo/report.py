"""What the demo prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from om_django.turn import Step

from .player import Happening, Played, Totals
from .terminal import said

SHOWN_LINES = 3
#: Lines of each block in an abridged context.
HEAD_LINES, TAIL_LINES = 4, 3


def happening(item: Happening) -> Iterator[Text]:
    """Yield what to print about an observation, a reflection or a failure."""
    line = Text()
    if item.kind == "observation":
        line.append("● observation ", "bold cyan")
        line.append(
            f"{item.messages:,} messages, {item.tokens_in:,} tokens → {item.tokens_out:,} tokens "
            f"({item.ratio:.1f}×)"
        )
        yield line
        yield from _first_lines(item.text)
        yield Text(
            f"  activation    window {_change(item.window)}, log {_change(item.log)} tokens", "cyan"
        )
    elif item.kind == "reflection":
        line.append("◆ reflection  ", "bold magenta")
        line.append(
            f"generation {item.generation}: {item.tokens_in:,} tokens → {item.tokens_out:,} tokens "
            f"({item.ratio:.1f}×)"
        )
        yield line
        yield from _first_lines(item.text)
    else:
        line.append("× failed      ", "bold red")
        yield line + said(item.text[:300])


def _change(sizes: tuple[int, int]) -> str:
    return f"{sizes[0]:,} → {sizes[1]:,}"


def _first_lines(text: str) -> Iterator[Text]:
    lines = [line for line in text.split("\n") if line.strip()]
    for line in lines[:SHOWN_LINES]:
        yield _one_line(f"    {line.rstrip()}")
    if len(lines) > SHOWN_LINES:
        yield Text(f"    … and {len(lines) - SHOWN_LINES} more lines", "dim")


def _one_line(text: str) -> Text:
    line = said(text, "dim")
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def context(console: Console, step: Step, *, full: bool) -> None:
    """Print the context of the next call: everything, or its shape."""
    console.print(Rule("The context of the next call", style="dim"))
    console.print()
    for number, block in enumerate(step.system, 1):
        lines = block.split("\n")
        hidden = len(lines) - HEAD_LINES - TAIL_LINES
        if not full and hidden > 1:
            lines = [*lines[:HEAD_LINES], f"… {hidden} more lines …", *lines[-TAIL_LINES:]]
        console.print(Text(f"system {number}", "bold"))
        for line in lines:
            _print_line(console, line, full=full)
    messages = [message for message in step.messages if message.position or full]
    if full:
        for message in messages:
            console.print(Text(message.role, "bold"))
            shown = message.text or ", ".join(part.type for part in message.parts)
            for line in shown.split("\n"):
                _print_line(console, line, full=True)
        return
    first = f" from message {messages[0].position:,} on" if messages else ""
    count = f"{len(messages):,} message{'' if len(messages) == 1 else 's'}"
    console.print(Text(f"then {count}{first}, {step.message_tokens:,} tokens", "bold"))
    console.print()


def _print_line(console: Console, line: str, *, full: bool) -> None:
    """Print a line of the context: whole, or what fits into one line of the terminal."""
    if full:
        console.print(said(f"  {line}"), soft_wrap=True)
    else:
        console.print(said(f"  {line}"), no_wrap=True, overflow="ellipsis")


def summary(played: Played, stored: Totals) -> Table:
    """Return the closing table."""
    final = played.final
    tokens = final.tokens if final is not None else 0
    ratio = f"{stored.tokens / tokens:.1f} : 1" if tokens else "–"
    bound = played.message_threshold + played.log_threshold
    rows = [
        ("Messages", f"{stored.messages:,}"),
        ("Tokens in total", f"{stored.tokens:,}"),
        ("Tokens in the final context", f"{tokens:,}"),
        ("Compression", ratio),
        ("Observations", f"{stored.observations:,}"),
        ("Reflections", f"{stored.reflections:,}"),
        ("Model calls", f"{stored.model_calls:,}"),
        ("Largest context", f"{played.largest_context:,}"),
        (
            "Message + observation threshold",
            f"{played.message_threshold:,} + {played.log_threshold:,} = {bound:,}",
        ),
        ("Largest single message", f"{played.largest_message:,}"),
        ("Step time, median", _seconds(median(played.step_seconds) if played.step_seconds else 0)),
        ("Step time, largest", _seconds(max(played.step_seconds, default=0))),
    ]
    table = Table(show_header=False, title="Summary", title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _seconds(value: float) -> str:
    return f"{value * 1000:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def where_next(console: Console, lines: Sequence[tuple[str, str]]) -> None:
    """Print commands and what they are for."""
    console.print(Text("Where to look next", "bold"))
    for command, meaning in lines:
        console.print(Text(f"  {command:<42} ", "green") + Text(meaning), soft_wrap=True)
