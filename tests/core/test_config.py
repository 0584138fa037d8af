from __future__ import annotations

from typing import Any

import pytest

from om_django.core.config import ConfigError, parse_config
from om_django.testing import ScriptedModel


def test_defaults_are_those_of_the_reference() -> None:
    config = parse_config({})
    assert config.enabled
    assert config.observer_model == config.reflector_model == "google/gemini-2.5-flash"
    assert config.observation.message_tokens == 30_000
    assert config.observation.previous_observer_tokens == 2_000
    assert config.reflection.observation_tokens == 40_000
    assert config.observer_settings.temperature == 0.3
    assert config.reflector_settings.temperature == 0.0
    assert config.observer_settings.max_output_tokens == 100_000
    assert config.observation.provider_options == {"google": {"thinking_budget": 215}}
    assert config.reflection.provider_options == {"google": {"thinking_budget": 1024}}


@pytest.mark.parametrize(
    ("options", "observer", "reflector"),
    [
        ({"model": "a/b"}, "a/b", "a/b"),
        ({"observation": {"model": "a/b"}}, "a/b", "a/b"),
        ({"reflection": {"model": "a/b"}}, "a/b", "a/b"),
        ({"observation": {"model": "a/b"}, "reflection": {"model": "c/d"}}, "a/b", "c/d"),
        ({"model": "default"}, "google/gemini-2.5-flash", "google/gemini-2.5-flash"),
    ],
)
def test_models_stand_in_for_each_other(options: Any, observer: str, reflector: str) -> None:
    config = parse_config(options)
    assert (config.observer_model, config.reflector_model) == (observer, reflector)


def test_the_output_limit_is_given_only_to_the_default_model() -> None:
    assert parse_config({"model": "a/b"}).observer_settings.max_output_tokens is None
    assert parse_config({"model": "default"}).observer_settings.max_output_tokens == 100_000
    settings = {"model_settings": {"max_output_tokens": 500}}
    config = parse_config({"model": "a/b", "observation": settings})
    assert config.observer_settings.max_output_tokens == 500
    assert config.observer_settings.temperature == 0.3


def test_a_model_may_be_an_object() -> None:
    model = ScriptedModel([])
    assert parse_config({"model": model}).observer_model is model


def test_no_limit_on_earlier_observations() -> None:
    observation = parse_config({"observation": {"previous_observer_tokens": False}}).observation
    assert observation.previous_observer_tokens is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"observations": {}}, "observations is not an option, did you mean observation?"),
        ({"observation": {"messageTokens": 1}}, "did you mean message_tokens?"),
        ({"observation": 5}, "observation must be a dict of options"),
        (
            {"observation": {"message_tokens": 0}},
            "observation.message_tokens must be a whole number above 0, not 0",
        ),
        ({"observation": {"message_tokens": True}}, "observation.message_tokens must be a whole"),
        ({"observation": {"message_tokens": 1.5}}, "observation.message_tokens must be a whole"),
        ({"reflection": {"observation_tokens": "1"}}, "reflection.observation_tokens must be"),
        ({"observation": {"previous_observer_tokens": -1}}, "False (no limit) or a whole number"),
        ({"observation": {"previous_observer_tokens": True}}, "False (no limit) or a whole number"),
        (
            {"observation": {"model_settings": {"temperature": 3}}},
            "observation.model_settings.temperature must be between 0 and 2",
        ),
        (
            {"observation": {"model_settings": {"top_p": 1}}},
            "observation.model_settings.top_p is not an option",
        ),
        ({"model": "gpt"}, "model must be 'provider/model'"),
        ({"model": 7}, "model must be 'provider/model'"),
        ({"model": []}, "model must be 'provider/model'"),
        ({"model": ["a/b", 7]}, "model must be 'provider/model'"),
        (
            {"model": "a/b", "reflection": {"model": "c/d"}},
            "model and reflection.model are both set",
        ),
        ({"observation": {"observe_attachments": 5}}, "a list of media types"),
        ({"observation": {"observe_attachments": [5]}}, "a list of media types"),
        ({"hooks": []}, "hooks must be a dict of functions: on_observation_start"),
        ({"hooks": {"on_observation_end": 5}}, "hooks must be a dict of functions"),
        ({"hooks": {"on_end": print}}, "hooks has no hook 'on_end': use one of on_obs"),
        ({"enabled": "yes"}, "enabled must be True or False, not 'yes'"),
        ({"time_zone": "Mars/Base"}, "time_zone must be an IANA time zone"),
        ({"blocking_timeout": float("nan")}, "blocking_timeout must be seconds above 0"),
        ({"observation": {"instruction": None}}, "observation.instruction must be a string"),
        ({"observation": {"provider_options": []}}, "observation.provider_options must be a dict"),
    ],
)
def test_problems_name_the_option_and_what_is_allowed(options: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(options)
    assert any(problem in found for found in caught.value.problems), caught.value.problems


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"x": 1, "enabled": 0, "observation": {"message_tokens": -1}})
    assert len(caught.value.problems) == 3
