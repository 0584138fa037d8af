"""Choosing models: by size of the input, and along a list."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from om_django import ModelByInputTokens, ModelWithRetries
from om_django.core.config import parse_config
from om_django.exceptions import ContextTooLong, PermanentModelError
from om_django.llm.base import ModelRequest
from om_django.llm.router import resolve_model
from om_django.models import Cursor, Operation
from om_django.observational import ObservationalMemory
from om_django.testing import ScriptedModel, observations

from ..conftest import words

REQUEST = ModelRequest(purpose="observe", system="", prompt="", provider_options={"a": 1})
DOWN = PermanentModelError("down")


def test_the_smallest_limit_that_is_large_enough_decides() -> None:
    tiers = ModelByInputTokens({40_000: "b/large", 10_000: "a/small"})
    assert tiers.get_thresholds() == [10_000, 40_000]
    assert [tiers.resolve(n) for n in (0, 1, 10_000, 10_001, 40_000)] == [
        "a/small",
        "a/small",
        "a/small",
        "b/large",
        "b/large",
    ]
    with pytest.raises(ContextTooLong, match="40001 tokens is above the largest limit, 40000"):
        tiers.resolve(40_001)


@pytest.mark.parametrize(
    ("up_to", "problem"),
    [
        ({}, "at least one limit"),
        ({0: "a/b"}, "above 0, not 0"),
        ({-1: "a/b"}, "above 0, not -1"),
        ({True: "a/b"}, "above 0, not True"),
        ({1.5: "a/b"}, "above 0, not 1.5"),
        ({10: "gpt"}, "the model up to 10 must be"),
        ({10: None}, "the model up to 10 must be"),
    ],
)
def test_bad_limits_are_named(up_to: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ModelByInputTokens(up_to)


def test_models_chosen_by_size_get_the_default_output_limit() -> None:
    config = parse_config({"model": ModelByInputTokens({10: "a/b"})})
    assert config.observer_settings.max_output_tokens == 100_000


def test_the_next_model_is_asked_when_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "om_django")
    first, off = ScriptedModel([DOWN], "a/first"), ScriptedModel(["no"], "a/off")
    second = ScriptedModel([DOWN, "yes"], "b/second")
    model = resolve_model(
        [
            first,
            ModelWithRetries(model=off, enabled=False),
            ModelWithRetries(model=second, max_retries=1, provider_options={"b": 2}),
        ],
        10,
    )
    assert model.name == "a/first"
    response = model.generate(REQUEST)
    assert (response.text, response.model) == ("yes", "b/second")
    assert (first.calls, off.calls, second.calls) == (1, 0, 2)
    assert first.requests[0].provider_options == {"a": 1}
    assert second.requests[0].provider_options == {"a": 1, "b": 2}
    assert [record.message for record in caplog.records] == [
        "Model a/first failed: down",
        "Model b/second failed: down",
    ]


async def test_the_async_form_falls_back_too() -> None:
    model = resolve_model([ScriptedModel([DOWN]), ScriptedModel(["yes"])], 10)
    assert (await model.agenerate(REQUEST)).text == "yes"


def test_the_last_error_is_told_when_all_fail() -> None:
    model = resolve_model((ScriptedModel([DOWN]), ScriptedModel([PermanentModelError("out")])), 1)
    with pytest.raises(PermanentModelError, match="out"):
        model.generate(REQUEST)
    with pytest.raises(PermanentModelError, match="no model of the list is enabled"):
        resolve_model([ModelWithRetries(model="a/b", enabled=False)], 1)
    with pytest.raises(PermanentModelError, match="no provider for model 'mars/rover'"):
        resolve_model("mars/rover", 1)


@pytest.mark.django_db
def test_an_observation_takes_the_model_of_its_size(
    make_memory: Callable[..., ObservationalMemory],
) -> None:
    small, large = ScriptedModel([observations("s")]), ScriptedModel([observations("l")])
    om = make_memory(ModelByInputTokens({2000: small, 4000: large}))
    for tokens in (1500, 3000, 6000):
        with om.turn("t") as turn:
            turn.user(words(tokens))
            turn.step()
    assert (small.calls, large.calls) == (1, 1)
    failed = Operation.objects.order_by("id").last()
    assert failed is not None
    assert failed.error.startswith("an input of ")
    assert Cursor.objects.get().position == 2
