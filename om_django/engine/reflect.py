"""Reflecting: the log is rewritten shorter, as the next generation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import Sum

from om_django.core.answers import tidy
from om_django.core.log import join_texts
from om_django.core.observer import BUILT_IN_SECTIONS
from om_django.core.provenance import Piece, split_by_source
from om_django.core.reflector import (
    Attempt,
    ReflectorInput,
    best,
    build_reflector_prompt,
    good,
    levels,
    parse_reflector_answer,
)
from om_django.core.text import clean_text
from om_django.exceptions import ReflectionFailed
from om_django.llm.base import Model, ModelError, ModelRequest, ModelResponse
from om_django.models import (
    Cursor,
    GroupKind,
    GroupState,
    MemoryRecord,
    ObservationGroup,
    OperationKind,
    Trigger,
)

from . import events, operations
from .flow import Flow
from .hooks import HookFailed, Hooks
from .observe import merge_values, recorded_call, save_extractions
from .services import Services
from .store import Loaded, retry_locked

#: A log that stayed above the threshold must grow by this share of it before the next attempt.
GROWTH = 0.1


def reflect(
    services: Services,
    loaded: Loaded,
    *,
    trigger: Trigger,
    deadline: float,
    start_level: int | None = None,
    extra_request: str = "",
) -> Flow[bool]:
    """Rewrite the whole log; ``deadline`` as ``time.monotonic``.

    Returns ``True`` when a new generation was opened, ``False`` when the state had moved on or
    another worker is at it. Raises :class:`ReflectionFailed`; then the log is as it was.
    """
    groups = [group for group in loaded.groups if group.state == GroupState.ACTIVE]
    log = join_texts(group.text for group in groups)
    if not log:
        return False
    tokens = sum(group.tokens for group in groups)
    try:
        run = operations.claim(
            record=loaded.record,
            thread=loaded.thread,
            kind=OperationKind.REFLECT,
            trigger=trigger,
            config=services.config,
            tokens_in=tokens,
            now=services.now(),
            seconds=max(0.0, deadline - time.monotonic()),
            until_sequence=groups[-1].sequence,
        )
    except (operations.Busy, operations.Stale):
        return False
    threshold = services.config.reflection.observation_tokens
    grown_by = round(threshold * GROWTH)
    hooks = services.hooks("reflection", loaded.thread, trigger)
    hooks.started()
    model_name = ""
    failed: str | None = None
    try:
        log = hooks.rewrite("before", log)
        model = services.reflector(tokens)
        model_name = model.name
        level = _start_level(model_name) if start_level is None else start_level
        task = _task(services, loaded, log, tokens, level, extra_request)
        attempt = yield from _ladder(services, run, model, task, deadline)
        attempt = _rewritten(services, hooks, attempt)
        retry_locked(lambda: _save(services, loaded, run, model, groups, attempt, grown_by))
    except GeneratorExit:
        failed = "cancelled"
        operations.fail(run, services.now(), failed, model=model_name, cancelled=True)
        raise
    except (ModelError, HookFailed) as error:
        failed = str(error) or type(error).__name__
        operations.fail(run, services.now(), failed, model=model_name)
        raise ReflectionFailed(failed) from error
    except ReflectionFailed as error:
        failed = str(error)
        operations.fail(run, services.now(), failed, model=model_name, grown_by=grown_by)
        raise
    except operations.LeaseLost:
        failed = "the lease ran out"
        return False
    except operations.Stale as error:
        failed = str(error)
        operations.fail(run, services.now(), failed, model=model_name, cancelled=True)
        return False
    finally:
        hooks.ended(run.usage, failed)
    return True


def _rewritten(services: Services, hooks: Hooks, attempt: Attempt) -> Attempt:
    """Apply ``after_reflection`` to what will be stored."""
    before = attempt.answer.observations
    after = hooks.rewrite("after", before)
    if after == before:
        return attempt
    text = tidy(clean_text(after))
    if not text:
        # The whole memory hangs on this text.
        raise HookFailed("after_reflection left nothing of the log")
    answer = replace(attempt.answer, observations=text)
    return replace(attempt, answer=answer, tokens=services.counter.count(text))


def _start_level(model_name: str) -> int:
    """Return where an automatic reflection starts. Source: reference."""
    return 2 if "gemini-2.5-flash" in model_name else 1


def _task(
    services: Services, loaded: Loaded, log: str, tokens: int, level: int, extra_request: str
) -> ReflectorInput:
    config = services.config
    sections: dict[str, str] = {}
    if config.reflection.continuation_hints:
        for slug in ("current-task", "suggested-response"):
            sections[slug] = BUILT_IN_SECTIONS[slug]
    values = loaded.cursor.values
    return ReflectorInput(
        log=log,
        log_tokens=tokens,
        target_tokens=config.reflection.observation_tokens,
        level=level,
        sections=sections,
        prior={slug: str(values[slug]) for slug in sections if values.get(slug)},
        instruction=config.reflection.instruction,
        language=config.language,
        extra_request=extra_request,
    )


def _ladder(
    services: Services,
    run: operations.Run,
    model: Model,
    task: ReflectorInput,
    deadline: float,
) -> Flow[Attempt]:
    """Try level after level; the first good attempt wins, else the smallest sound one."""
    attempts: list[Attempt] = []
    # A log that is below the threshold already (a manual reflection) must only get smaller.
    target = min(task.target_tokens, task.log_tokens)
    error: ModelError | None = None
    for level in levels(task.level):
        reply = yield from _call(services, run, model, replace(task, level=level), deadline)
        if isinstance(reply, ModelError):
            error = reply
            break
        cut = reply.finish_reason == "length"
        answer = parse_reflector_answer(reply.text, task, cut=cut)
        tokens = services.counter.count(answer.observations) if answer.observations else 0
        attempt = Attempt(level, answer, tokens, cut)
        run.calls[-1].verdict = answer.verdict.value
        run.calls[-1].error = answer.detail
        attempts.append(attempt)
        if good(attempt, target):
            return attempt
    chosen = best(attempts, task.log_tokens)
    if chosen is not None:
        return chosen
    if error is not None:
        raise error
    last = attempts[-1].answer
    raise ReflectionFailed(
        f"no usable reflection in {len(attempts)} attempts: "
        f"{last.detail or 'the result is not smaller than the log'}"
    )


def _call(
    services: Services,
    run: operations.Run,
    model: Model,
    task: ReflectorInput,
    deadline: float,
) -> Flow[ModelResponse | ModelError]:
    prompt = build_reflector_prompt(task)
    settings = services.config.reflector_settings
    request = ModelRequest(
        purpose="reflect",
        system=prompt.system,
        prompt=prompt.prompt,
        temperature=settings.temperature,
        max_output_tokens=settings.max_output_tokens,
        provider_options=services.config.reflection.provider_options,
        task=task,
    )
    return (yield from recorded_call(run, model, request, task.level, deadline))


def _save(
    services: Services,
    loaded: Loaded,
    run: operations.Run,
    model: Model,
    groups: Sequence[ObservationGroup],
    attempt: Attempt,
    grown_by: int,
) -> None:
    now = services.now()
    answer = attempt.answer
    with transaction.atomic():
        record = operations.save_end(run, now, tokens_out=attempt.tokens, model=model.name)
        closed = ObservationGroup.objects.filter(
            record=record,
            state=GroupState.ACTIVE,
            pk__in=[group.pk for group in groups],
        ).update(state=GroupState.SUPERSEDED, closed_generation=record.generation + 1)
        if closed != len(groups):
            raise operations.Stale("the log has changed")
        pieces = split_by_source(answer.observations, [group.text for group in groups])
        ObservationGroup.objects.bulk_create(
            _group(services, run, record.generation + 1, groups, piece, number)
            for number, piece in enumerate(pieces, 1)
        )
        active = ObservationGroup.objects.filter(record=record, state=GroupState.ACTIVE)
        total: int = active.aggregate(total=Sum("tokens"))["total"] or 0
        threshold = services.config.reflection.observation_tokens
        MemoryRecord.objects.filter(pk=record.pk).update(
            generation=record.generation + 1,
            log_tokens=total,
            reflect_failures=0,
            reflect_not_before=None,
            reflect_above=total + grown_by if total >= threshold else 0,
        )
        cursor = Cursor.objects.get(record=record, thread=loaded.thread)
        values, brought = merge_values(cursor.values, answer.values)
        Cursor.objects.filter(pk=cursor.pk).update(values=values)
        save_extractions(run, loaded.thread, brought)
        events.ended(
            run.operation,
            loaded.thread,
            now,
            observations=answer.observations,
            values=brought,
            failures=[],
        )


def _group(
    services: Services,
    run: operations.Run,
    generation: int,
    groups: Sequence[ObservationGroup],
    piece: Piece,
    number: int,
) -> ObservationGroup:
    """Return a piece of the reflection. It stands where the last group it replaces stood."""
    sources = [groups[index] for index in piece.sources]
    first = min(sources, key=lambda group: group.first_position)
    last = max(sources, key=lambda group: group.last_position)
    return ObservationGroup(
        record_id=run.operation.record_id,
        thread=first.thread,
        operation=run.operation,
        kind=GroupKind.REFLECTION,
        state=GroupState.ACTIVE,
        sequence=groups[-1].sequence,
        piece=number,
        generation=generation,
        text=piece.text,
        tokens=services.counter.count(piece.text),
        first_message=first.first_message,
        last_message=last.last_message,
        first_position=first.first_position,
        last_position=last.last_position,
        message_count=sum(group.message_count for group in sources),
        message_tokens=sum(group.message_tokens for group in sources),
        observed_until=max(group.observed_until for group in sources),
    )
