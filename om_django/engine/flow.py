"""Flows: one code path for sync and async callers.

A flow is a generator. It does its database work itself and yields what takes time: a
:class:`ModelJob` to be asked, or a :class:`Pause`. :func:`run` and :func:`arun` drive it. No
transaction is ever open across a yield.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from asgiref.sync import sync_to_async
from django.db import connections

from om_django.llm.base import (
    Model,
    ModelError,
    ModelRequest,
    ModelResponse,
    ModelTimeout,
    PermanentModelError,
)

logger = logging.getLogger("om_django")

FIRST_DELAY = 1.0
MAX_DELAY = 120.0
MAX_TRIES = 9


@dataclass(frozen=True, slots=True)
class ModelJob:
    """A call to be made; ``timeout`` is in seconds."""

    model: Model
    request: ModelRequest
    timeout: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Time to let pass, in seconds."""

    seconds: float


Reply = ModelResponse | ModelError | None
T = TypeVar("T")
Flow = Generator[ModelJob | Pause, Reply, T]


def run(flow: Flow[T]) -> T:
    """Drive a flow to its end and return its result."""
    try:
        item = next(flow)
        while True:
            if isinstance(item, Pause):
                time.sleep(item.seconds)
                item = flow.send(None)
            else:
                item = flow.send(_ask(item))
    except StopIteration as stop:
        return cast(T, stop.value)
    finally:
        flow.close()


async def arun(flow: Flow[T]) -> T:
    """Drive a flow from async code: database work in a thread, models awaited."""
    advance = sync_to_async(_advance, thread_sensitive=True)
    reply: Reply = None
    try:
        while True:
            item, done, result = await advance(flow, reply)
            if done:
                return cast(T, result)
            if isinstance(item, Pause):
                await asyncio.sleep(item.seconds)
                reply = None
            else:
                reply = await _aask(item)
    finally:
        await asyncio.shield(sync_to_async(flow.close, thread_sensitive=True)())


def _advance(flow: Flow[T], reply: Reply) -> tuple[Any, bool, Any]:
    # StopIteration cannot cross an await, so its value travels as data.
    try:
        return flow.send(reply), False, None
    except StopIteration as stop:
        return None, True, stop.value


def _ask(job: ModelJob) -> Reply:
    """Call a model in a thread, so that one that hangs cannot hold the caller past its limit."""
    outcome: list[Reply] = []

    def target() -> None:
        try:
            outcome.append(job.model.generate(replace(job.request, timeout=job.timeout)))
        except Exception as error:  # noqa: BLE001 # any fault of a model is an answer here
            outcome.append(_as_model_error(error))
        finally:
            connections.close_all()

    context = contextvars.copy_context()
    thread = threading.Thread(
        target=context.run, args=(target,), name="om_django-model", daemon=True
    )
    thread.start()
    thread.join(job.timeout)
    return outcome[0] if outcome else ModelTimeout(f"no answer within {job.timeout:.2g} s")


async def _aask(job: ModelJob) -> Reply:
    try:
        async with asyncio.timeout(job.timeout):
            return await job.model.agenerate(replace(job.request, timeout=job.timeout))
    except TimeoutError:
        return ModelTimeout(f"no answer within {job.timeout:.2g} s")
    except Exception as error:  # noqa: BLE001 # any fault of a model is an answer here
        return _as_model_error(error)


def _as_model_error(error: Exception) -> ModelError:
    if isinstance(error, ModelError):
        return error
    logger.warning("A model raised %s", type(error).__name__, exc_info=error)
    wrapped = PermanentModelError(f"{type(error).__name__}: {error}"[:2000])
    wrapped.__cause__ = error
    return wrapped


def ask(model: Model, request: ModelRequest, deadline: float) -> Flow[ModelResponse | ModelError]:
    """Ask a model, again after transient errors, until ``deadline`` (``time.monotonic``).

    Delays double from one second up to two minutes; at most nine tries. Source: reference.
    """
    delay = FIRST_DELAY
    error: ModelError = ModelTimeout("no time was left to ask the model")
    for number in range(MAX_TRIES):
        left = deadline - time.monotonic()
        if left <= 0:
            return error
        reply = yield ModelJob(model, request, left)
        if isinstance(reply, ModelResponse):
            return reply
        if reply is not None:
            error = reply
        if not error.retryable or number + 1 == MAX_TRIES:
            return error
        if time.monotonic() + delay >= deadline:
            return error
        yield Pause(delay)
        delay = min(delay * 2, MAX_DELAY)
    return error
