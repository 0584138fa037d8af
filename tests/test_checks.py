from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from om_django.checks import check_settings
from om_django.observational import ObservationalMemory, memories

OTHER = ObservationalMemory("other")


def errors() -> list[tuple[str | None, str]]:
    return [
        (found.id, str(found.msg)) for found in check_settings(None) if found.id != "om_django.W001"
    ]


@pytest.mark.parametrize(
    ("setting", "code", "text"),
    [
        ([], "om_django.E001", "OM_DJANGO must be a dict"),
        (
            {"MEMORY": {}},
            "om_django.E001",
            "OM_DJANGO['MEMORY'] is not a setting, did you mean 'MEMORIES'?",
        ),
        ({"MEMORIES": {}}, "om_django.E001", "at least one memory"),
        ({"MEMORIES": {"": {}}}, "om_django.E001", "no text of 1 to 64 characters"),
        (
            {"MEMORIES": {"a": {"model": 5}}},
            "om_django.E002",
            "OM_DJANGO['MEMORIES']['a']: model must be",
        ),
        ({"MEMORIES": {"a": "no.such.thing"}}, "om_django.E002", "No module named 'no'"),
        ({"MEMORIES": {"a": "tests.test_checks.OTHER"}}, "om_django.E002", "calls itself 'other'"),
    ],
)
def test_bad_settings_fail_at_start_up(settings: Any, setting: Any, code: str, text: str) -> None:
    settings.OM_DJANGO = setting
    (found,) = errors()
    assert found[0] == code
    assert text in found[1]


def test_good_settings_pass(settings: Any) -> None:
    settings.OM_DJANGO = {"MEMORIES": {"default": {}, "other": "tests.test_checks.OTHER"}}
    assert errors() == []
    del settings.OM_DJANGO
    assert errors() == []
    assert list(memories) == ["default"]


def test_an_unknown_memory_is_named(settings: Any) -> None:
    settings.OM_DJANGO = {"MEMORIES": {"default": {}}}
    with pytest.raises(ImproperlyConfigured, match="has no memory 'x', only 'default'"):
        memories["x"]


@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
def test_sqlite_without_immediate_transactions_is_warned_of(settings: Any) -> None:
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": "x"}
    settings.DATABASES = {"default": sqlite}
    assert [found.id for found in check_settings(None)] == ["om_django.W001"]
    settings.DATABASES = {"default": {**sqlite, "OPTIONS": {"transaction_mode": "immediate"}}}
    assert check_settings(None) == []
