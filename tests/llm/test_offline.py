"""The offline model as a model."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from om_django.core.messages import Message, TextPart
from om_django.core.observer import ObserverInput, build_observer_prompt, parse_observer_answer
from om_django.core.reflector import ReflectorInput, build_reflector_prompt
from om_django.llm.base import Model, ModelRequest, PermanentModelError, Purpose
from om_django.llm.offline import ExtractiveModel

TASK = ObserverInput(
    messages=(
        Message(
            role="user",
            parts=(TextPart("I moved to Lund yesterday."),),
            created_at=datetime(2026, 2, 3, 12, 0, tzinfo=UTC),
        ),
    )
)


def count(text: str) -> int:
    return len(text.split())


def request() -> ModelRequest:
    prompt = build_observer_prompt(TASK, count)
    return ModelRequest(purpose="observe", system=prompt.system, prompt=prompt.prompt, task=TASK)


def test_it_is_a_model() -> None:
    model = ExtractiveModel()
    assert isinstance(model, Model)
    assert model.name == "offline/extractive"


def test_it_observes_and_counts() -> None:
    response = ExtractiveModel(count=count).generate(request())
    answer = parse_observer_answer(response.text, TASK)
    assert answer.observations.splitlines() == [
        "Date: Feb 3, 2026",
        "* 🔴 (12:00) User: I moved to Lund yesterday (meaning Feb 2, 2026)",
    ]
    assert response.finish_reason == "stop"
    assert response.model == "offline/extractive"
    assert response.usage.input_tokens == count(request().prompt)
    assert response.usage.output_tokens == count(response.text)


def test_async_says_the_same() -> None:
    model = ExtractiveModel()
    assert asyncio.run(model.agenerate(request())) == model.generate(request())


def test_it_reflects() -> None:
    log = "Date: Feb 3, 2026\n* 🔴 (12:00) User: I moved to Lund"
    task = ReflectorInput(log=log, log_tokens=20, target_tokens=100)
    prompt = build_reflector_prompt(task)
    response = ExtractiveModel().generate(
        ModelRequest(purpose="reflect", system=prompt.system, prompt=prompt.prompt, task=task)
    )
    assert log in response.text


@pytest.mark.parametrize("purpose", ["observe", "reflect", "extract", "chat"])
def test_anything_else_is_refused(purpose: Purpose) -> None:
    with pytest.raises(PermanentModelError, match="only observe and reflect"):
        ExtractiveModel().generate(ModelRequest(purpose=purpose, system="", prompt="Hello"))


def test_a_task_of_the_other_kind_is_refused() -> None:
    with pytest.raises(PermanentModelError):
        ExtractiveModel().generate(ModelRequest(purpose="reflect", system="", prompt="", task=TASK))
