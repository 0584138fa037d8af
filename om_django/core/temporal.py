"""Days named in relative words, counted from the moment they were said.

Only words that point at a real day or stretch resolve. Vague ones ("recently", "soon", "a few days
ago", "some day") and the present ("today", "this week") resolve to nothing.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from .dates import MONTHS, parse_day

Certainty: TypeAlias = Literal["meaning", "estimated"]
Resolved: TypeAlias = tuple[date, Certainty]

#: Texts are read up to here: a date that matters stands in a sentence, not in a document.
MAX_CHARS = 1_000
#: "Five hundred years ago" is history, nobody's plan.
MAX_YEARS = 80
#: A month without tense, "in June", is the one this near, or none.
NEAR_DAYS = 125

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:rs|rsday|r)?|fri(?:day)?"
    r"|saturday|sunday)\b"
)
_WORDS = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number for number, word in enumerate(_WORDS.split(), 1)}
_NUMBERS |= {"a": 1, "an": 1, "couple": 2, "a couple": 2, "a couple of": 2, "couple of": 2}
_COUNT = rf"(?P<count>\d{{1,3}}|a couple of|a couple|couple of|{'|'.join(_NUMBERS)})"
_MONTH_NAMES = {name.lower(): number for number, name in enumerate(MONTHS, 1)}
_MONTH_NAMES |= {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}
_MONTH_NAMES["sept"] = 9
_MONTH = "(?P<month>" + "|".join(sorted(_MONTH_NAMES, key=len, reverse=True)) + r")\.?"
# "may" and "march" are verbs too: where a month stands alone it must be capitalised.
_MONTH_ALONE = "(?P<month>" + "|".join(MONTHS) + ")"
_ALONE = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b")
_ORDINAL = "(?:st|nd|rd|th)"
_DAYS = rf"{_ORDINAL}?(?:\s?(?:[-–]|to|and)\s?(?:[a-z]{{3,9}}\s)?\d{{1,2}}{_ORDINAL}?)?"
_CALENDAR = re.compile(
    rf"\b(?:{_MONTH}\s(?:the\s)?(?P<day>\d{{1,2}}){_DAYS}"
    rf"|(?P<day2>\d{{1,2}}){_DAYS}(?:\sof)?\s{_MONTH.replace('<month>', '<month2>')})"
    r"(?:,?\s(?P<year>\d{4}))?(?!\w|[:%]|[.,]\d)"
    r"|\b\d{4}-\d{2}-\d{2}\b|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_TO = re.compile(r"\s*(?:-|–|—|to|until|till|through)\s*(?:\w{3,9}\s)?", re.IGNORECASE)
_TENSE = re.compile(
    r"\b(?:(?P<past>was|were|had|did|went|got|came|took|made|saw|met|ran|won|lost|bought|sold|left"
    r"|began|gave|found|told|said|spent|flew|drove|ate|fell|fed|kept|held|heard|wrote|sent|slept"
    r"|built|caught|chose|drew|grew|hit|led|paid|rode|sang|swam|sat|stood|taught|threw|wore|woke"
    r"|broke|brought|thought|felt|agreed|been|since|[a-z]{2,15}[^e\W\d_]ed|war|hatte|wurde|fui|fue"
    r"|foi)|(?:will|going to|gonna|plan(?:s|ning|ned)? to|plan for|scheduled|supposed"
    r"|hop(?:e|ing) to|want(?:s|ed)? to|needs? to|must|should|have to|has to|due|booked for"
    r"|until|by)\b(?: \w{1,12}){0,2})\b"
    r"|'ll\b(?: \w{1,12}){1,2}",
    re.IGNORECASE,
)
_CJK_DIGITS = {c: n for n, c in enumerate("一二三四五六七八九十", 1)} | {"两": 2, "几": 0}
_ZH_UNIT = {"天": "day", "日": "day", "周": "week", "星期": "week", "个月": "month", "年": "year"}
_ZH_YEARS = {"前年": -2, "去年": -1, "明年": 1, "后年": 2}
_ZH_WEEKDAY = "一二三四五六日"


@dataclass(frozen=True, slots=True)
class _Rule:
    """``rank`` 0 names a day, 1 a weekend or week, 2 a month, 3 a year: the finest one wins."""

    pattern: re.Pattern[str]
    rank: int
    day: Callable[[re.Match[str], datetime, str], Resolved | None]


def resolve(text: str, when: datetime) -> Resolved | None:
    """Return the day that ``text``, said at ``when``, speaks of, and how sure that is.

    ``when`` is in the speaker's time zone. Of several expressions the most exact one is taken, the
    first of equals; where several calendar days are named, none. "meaning" is a day that follows
    from the words, "estimated" one inside of a longer stretch: a month is its 15th, a year its
    first of July, a weekend its Saturday.
    """
    if not _HINT.search(text := text[:MAX_CHARS]):
        return None
    if named := _calendar(text, when):
        # Several are a list or a comparison: none of them is the day of it all.
        return (named[0], "meaning") if len(named) == 1 else None
    found: tuple[int, int, Resolved] | None = None
    for rule in _RULES:
        if found is not None and rule.rank > found[0]:
            break
        for match in rule.pattern.finditer(text):
            if found is not None and (rule.rank, match.start()) >= found[:2]:
                break
            try:
                day = rule.day(match, when, text)
            except (ValueError, OverflowError):
                day = None
            if day is not None:
                found = (rule.rank, match.start(), day)
                break
    return found[2] if found else None


def _calendar(text: str, when: datetime) -> list[date]:
    """Return the calendar days named, of a range the first.

    A day without a year is the nearest of that name.
    """
    days: list[date] = []
    end = 0
    for match in _CALENDAR.finditer(text) if _DIGIT.search(text) else ():
        name = match["month"] or match["month2"]
        try:
            if match["year"] or not name:
                day = parse_day(match.group())
            elif match["month2"] in ("may", "march"):
                continue  # "12 may be enough"
            else:
                number = int(match["day"] or match["day2"])
                day = _nearest(_MONTH_NAMES[name.lower()], number, when)
        except (ValueError, OverflowError):
            continue
        ranged = len(days) == 1 and _TO.fullmatch(text[end : match.start()])
        end = match.end()
        if day is not None and day not in days and not ranged:
            days.append(day)
    return days


def add_months(day: date, months: int) -> date:
    """Return the same day of another month, or its last day where that month is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _shift(count: int, unit: str, when: datetime) -> Resolved | None:
    if count == 0 or (unit == "year" and abs(count) > MAX_YEARS):
        return None
    day = when.date()
    if unit in ("day", "night"):
        return day + timedelta(days=count), "meaning"
    if unit == "weekend":
        return _saturday(day) + timedelta(weeks=count), "estimated"
    if unit in ("week", "fortnight"):
        return day + timedelta(weeks=count * (2 if unit == "fortnight" else 1)), "estimated"
    return add_months(day, count * (1 if unit == "month" else 12)), "estimated"


def _saturday(day: date) -> date:
    """Return the Saturday of the weekend that is on or comes next."""
    return day - timedelta(days=1) if day.weekday() == 6 else day + timedelta(5 - day.weekday())


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]


def _ago(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    return _shift(-_number(match["count"]), match["unit"].lower(), when)


def _ahead(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    return _shift(_number(match["count"]), match["unit"].lower(), when)


def _fixed(days: int) -> Callable[[re.Match[str], datetime, str], Resolved | None]:
    return lambda match, when, text: (when.date() + timedelta(days=days), "meaning")


def _weekday(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    wanted = next(i for i, n in enumerate(_WEEKDAYS) if n.startswith(match["weekday"][:3].lower()))
    word = (match["which"] or "").lower()
    day = when.date()
    back = (day.weekday() - wanted) % 7 or 7
    ahead = (wanted - day.weekday()) % 7 or 7
    if word in ("last", "past", "previous"):
        return day - timedelta(days=back), "meaning"
    if word == "next":
        # Said on a Tuesday, "next Friday" is the one of the week after for most, not for all.
        return day - timedelta(day.weekday()) + timedelta(days=7 + wanted), "estimated"
    if word == "this" or word in ("by", "until") or _tense(match, text) != "past":
        if word == "this" and ahead == 7:
            return None
        return day + timedelta(days=ahead), "meaning"
    return day - timedelta(days=back), "meaning"


def _tense(match: re.Match[str], text: str) -> Literal["past", "ahead", ""]:
    """Return the tense of the last verb before an expression, else of the first after it."""
    before = text[max(0, match.start() - 80) : match.start()]
    cues = list(_TENSE.finditer(before))
    cue = cues[-1] if cues else _TENSE.search(text, match.end(), match.end() + 50)
    return "" if cue is None else "past" if cue["past"] else "ahead"


def _stretch(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    unit, word = match["unit"].lower(), match["which"].lower()
    step = 1 if word in ("next", "coming", "following") else 0 if word == "this" else -1
    day = when.date()
    if unit == "weekend":
        return _saturday(day) + timedelta(weeks=step), "estimated"
    if unit == "night":
        return (day - timedelta(days=1), "meaning") if step == -1 else None
    if step == 0:
        return None
    if unit == "week":
        return day + timedelta(weeks=step), "estimated"
    if unit == "month":
        return add_months(day.replace(day=15), step), "estimated"
    return date(day.year + step, 7, 1), "estimated"


def _season(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    month = {"spring": 4, "summer": 7, "fall": 10, "autumn": 10, "winter": 1}[match["unit"].lower()]
    step = 1 if match["which"].lower() == "next" else -1
    day = when.date()
    target = date(day.year, month, 15)
    if (target - day).days * step < 31:
        target = target.replace(year=day.year + step)
    return target, "estimated"


def _end_of(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    day, unit = when.date(), match["unit"].lower()
    later = (match["which"] or "").strip().lower() == "next"
    if unit == "week":
        return day + timedelta(days=4 - day.weekday() + (7 if later else 0)), "estimated"
    if unit == "year":
        return date(day.year + later, 12, 31), "estimated"
    first = add_months(day.replace(day=1), 2 if later else 1)
    return first - timedelta(days=1), "meaning"


def _day_of_month(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    """Resolve "on the 14th": in the past when the words are, else the next one."""
    day, number = when.date(), int(match["day"])
    past = match["by"] is None and _tense(match, text) == "past"
    for step in range(0, -3, -1) if past else range(3):
        month = add_months(day.replace(day=1), step)
        if number > calendar.monthrange(month.year, month.month)[1]:
            continue
        candidate = month.replace(day=number)
        if match["weekday"] and not _WEEKDAYS[candidate.weekday()].startswith(
            match["weekday"][:3].lower()
        ):
            continue
        if (candidate < day) if past else (candidate > day):
            return candidate, "meaning"
    return None


def _month_alone(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    month = _MONTH_NAMES[match["month"].lower()]
    part = {"early": 7, "late": 23}.get((match["part"] or "").lower(), 15)
    word = (match["which"] or "").lower()
    if match["year"]:
        return date(int(match["year"]), month, part), "estimated"
    if len(set(_ALONE.findall(text))) > 1:
        # "February or June": a comparison, or something that comes every year.
        return None
    tense = {"last": "past", "since": "past", "next": "ahead", "by": "ahead"}.get(word)
    tense = tense or _tense(match, text) or ("ahead" if word == "until" else "")
    day = when.date()
    if not tense:
        target = _nearest(month, part, when)
        return (target, "estimated") if abs((target - day).days) <= NEAR_DAYS else None
    this_year = month < day.month or (month == day.month and word not in ("last", "next"))
    if tense == "past":
        return date(day.year if this_year else day.year - 1, month, part), "estimated"
    later = month < day.month or (month == day.month and word == "next")
    return date(day.year + later, month, part), "estimated"


def _nearest(month: int, number: int, when: datetime) -> date:
    """Return the day of that name closest to ``when``."""
    day = when.date()
    options = [
        date(year, month, number)
        for year in (day.year - 1, day.year, day.year + 1)
        if number <= calendar.monthrange(year, month)[1]
    ]
    if not options:
        raise ValueError("no such day")
    return min(options, key=lambda option: abs((option - day).days))


def _zh_shift(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    raw = match["count"]
    count = int(raw) if raw.isdigit() else _CJK_DIGITS[raw]
    return _shift(-count if match["way"] == "前" else count, _ZH_UNIT[match["unit"]], when)


def _zh_week(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    step = {"上": -1, "下": 1, "这": 0, "本": 0}[match["which"]]
    day = when.date()
    if not match["weekday"]:
        return (day + timedelta(weeks=step), "estimated") if step else None
    wanted = _ZH_WEEKDAY.index("日" if match["weekday"] == "天" else match["weekday"])
    monday = day - timedelta(days=day.weekday())
    return monday + timedelta(days=wanted, weeks=step), "meaning"


def _zh_month(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    return add_months(when.date().replace(day=15), -1 if match["which"] == "上" else 1), "estimated"


def _zh_year(match: re.Match[str], when: datetime, text: str) -> Resolved | None:
    return date(when.year + _ZH_YEARS[match.group()], 7, 1), "estimated"


def _rule(
    rank: int,
    pattern: str,
    day: Callable[[re.Match[str], datetime, str], Resolved | None],
    *,
    case: bool = False,
) -> _Rule:
    return _Rule(re.compile(pattern, 0 if case else re.IGNORECASE), rank, day)


_RULES = (
    _rule(0, r"\b(?:the )?day before yesterday\b|\bvorgestern\b|\banteontem\b|前天", _fixed(-2)),
    _rule(0, r"\b(?:the )?day after tomorrow\b|\bübermorgen\b|\bpasado mañana\b|后天", _fixed(2)),
    _rule(
        0,
        r"(?<!before )\byesterday\b|\blast (?:night|evening)\b|\bgestern\b|\bayer\b|\bontem\b"
        r"|\bwczoraj\b|昨天|昨晚|昨日",
        _fixed(-1),
    ),
    _rule(
        0,
        r"(?<!after )\btomorrow\b|\bdemain\b|\bamanhã\b|\bjutro\b|明天|明日"
        r"|(?<!pasado )(?<!la )(?<!esta )\bmañana\b",
        _fixed(1),
    ),
    # "Morgen" with a capital is the morning.
    _rule(0, r"(?<!heute )(?<!gestern )(?<!guten )\bmorgen\b", _fixed(1), case=True),
    _rule(0, rf"\b{_COUNT} (?P<unit>day|night)s? (?:ago|back)\b", _ago),
    _rule(0, rf"\bin {_COUNT} (?P<unit>day)s?(?: time)?\b", _ahead),
    _rule(0, rf"\b{_COUNT} (?P<unit>day)s? from (?:now|today)\b", _ahead),
    _rule(
        0,
        rf"\b(?:(?P<by>by|until|before)|on|{_WEEKDAY}) the (?P<day>\d{{1,2}})(?:st|nd|rd|th)\b",
        _day_of_month,
    ),
    _rule(0, rf"\b(?P<which>last|past|previous|next|this|on|by|until) {_WEEKDAY}", _weekday),
    _rule(0, r"\bend of (?:the |this )?(?P<which>next )?(?P<unit>month)\b", _end_of),
    _rule(
        0, r"(?P<which>[上下这本])(?:个)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天]?)", _zh_week
    ),
    _rule(
        0,
        r"(?P<count>\d{1,3}|[一两二三四五六七八九十])(?P<unit>天|日|周|个月|年|星期)(?:以|之)?"
        r"(?P<way>前|后)",
        _zh_shift,
    ),
    _rule(1, rf"\b{_COUNT} (?P<unit>weekend|week|fortnight)s? (?:ago|back)\b", _ago),
    _rule(
        1, rf"\b(?:in )?{_COUNT} (?P<unit>week|fortnight)s? (?:from now|from today|time)\b", _ahead
    ),
    _rule(1, rf"\bin {_COUNT} (?P<unit>week|fortnight)s?\b", _ahead),
    _rule(
        1,
        r"\b(?P<which>last|past|previous|next|coming|following|this) (?P<unit>weekend|week)\b",
        _stretch,
    ),
    _rule(1, r"\bend of (?:the |this )?(?P<which>next )?(?P<unit>week|year)\b", _end_of),
    _rule(
        2,
        rf"\b(?:(?P<part>early|mid|late)[ -]|(?P<which>last|next|in|since|by|until) )"
        rf"{_MONTH_ALONE}\b(?:,? (?P<year>\d{{4}}))?(?! \d)",
        _month_alone,
        case=True,
    ),
    _rule(2, rf"\b{_COUNT} (?P<unit>month)s? (?:ago|back)\b", _ago),
    _rule(2, rf"\bin {_COUNT} (?P<unit>month)s?\b", _ahead),
    _rule(2, r"\b(?P<which>last|next|coming|following) (?P<unit>month)\b", _stretch),
    _rule(2, r"(?P<which>[上下])个?月", _zh_month),
    _rule(2, r"\b(?P<which>last|next) (?P<unit>spring|summer|fall|autumn|winter)\b", _season),
    _rule(3, rf"\b{_COUNT} (?P<unit>year)s? (?:ago|back)\b", _ago),
    _rule(3, rf"\bin {_COUNT} (?P<unit>year)s?\b", _ahead),
    _rule(3, r"\b(?P<which>last|next|coming) (?P<unit>year)\b", _stretch),
    _rule(3, r"去年|明年|前年|后年", _zh_year),
)
# One cheap scan before thirty: most sentences name no day at all.
_HINT = re.compile(
    r"\b(?:yesterday|tomorrow|(?:day|night|week|weekend|fortnight|month|year)s?|evening|\d{1,2}(?:st|nd|rd|th)"
    r"|spring|summer|fall|autumn|winter|gestern|vorgestern|morgen|übermorgen|ayer|mañana|ontem"
    r"|anteontem|amanhã|wczoraj|jutro|demain)\b|[前后昨明上下这本去]"
    r"|\d{4}[-年]|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)",
    re.IGNORECASE,
)
