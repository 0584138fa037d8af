"""Observing: a stretch of the window becomes a group of the log, and the cursor moves past it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from om_django.core.answers import Answer, Verdict, tidy
from om_django.core.convert.pairs import safe_cut
from om_django.core.log import join_texts
from om_django.core.messages import Message
from om_django.core.observer import (
    BUILT_IN_SECTIONS,
    ObserverInput,
    build_observer_prompt,
    parse_observer_answer,
)
from om_django.core.planner import count_window
from om_django.core.text import JSON, clean_text
from om_django.exceptions import ObservationFailed
from om_django.llm.base import (
    ContextTooLong,
    Model,
    ModelError,
    ModelRequest,
    ModelResponse,
    PermanentModelError,
)
from om_django.models import (
    Cursor,
    Extraction,
    GroupKind,
    GroupState,
    MemoryRecord,
    ModelCall,
    ObservationGroup,
    OperationKind,
    Thread,
    Trigger,
)

from . import events, operations
from .flow import Flow, ask
from .hooks import HookFailed, Hooks
from .services import Services
from .store import Loaded, retry_locked

#: Calls for one stretch: the first and one with firmer guidance. Source: reference.
ATTEMPTS = 2
#: Below this many tokens notes may be as long as what they note.
SMALL = 200
MIN_TITLE_CHARS = 3


@dataclass(slots=True)
class _Candidate:
    answer: Answer
    tokens: int


def observe(
    services: Services, loaded: Loaded, count: int, *, trigger: Trigger, deadline: float
) -> Flow[bool]:
    """Observe the first ``count`` messages of the window; ``deadline`` as ``time.monotonic``.

    Returns ``True`` when they were observed, ``False`` when the state had moved on or another
    worker is at it. Raises :class:`ObservationFailed`; then nothing has changed but the pause.
    """
    messages = loaded.messages[:count]
    try:
        run = operations.claim(
            record=loaded.record,
            thread=loaded.thread,
            kind=OperationKind.OBSERVE,
            trigger=trigger,
            config=services.config,
            tokens_in=count_window(messages),
            now=services.now(),
            seconds=max(0.0, deadline - time.monotonic()),
            start_position=messages[0].position,
            end_position=messages[-1].position,
        )
    except (operations.Busy, operations.Stale):
        return False
    hooks = services.hooks("observation", loaded.thread, trigger)
    hooks.started()
    model_name = ""
    error: str | None = None
    try:
        given = hooks.before(messages)
        model = services.observer(count_window(given))
        model_name = model.name
        candidate, last = yield from _best_answer(services, loaded, run, model, given, deadline)
        if last is not None:
            messages = tuple(m for m in messages if m.position <= last.position)
        candidate = _rewritten(services, hooks, candidate)
        retry_locked(lambda: _save(services, loaded, run, model, messages, candidate))
    except GeneratorExit:
        error = "cancelled"
        operations.fail(run, services.now(), error, model=model_name, cancelled=True)
        raise
    except (ModelError, ObservationFailed, HookFailed) as failure:
        error = _describe(failure)
        operations.fail(run, services.now(), error, model=model_name)
        raise ObservationFailed(error) from failure
    except operations.LeaseLost:
        error = "the lease ran out"
        return False
    except (operations.Stale, IntegrityError) as failure:
        # The constraints of the table refuse a stretch that somebody has observed already.
        error = _describe(failure)
        operations.fail(run, services.now(), error, model=model_name, cancelled=True)
        return False
    finally:
        hooks.ended(run.usage, error)
    return True


def _rewritten(services: Services, hooks: Hooks, candidate: _Candidate) -> _Candidate:
    """Apply ``after_observation`` to what will be stored."""
    before = candidate.answer.observations
    after = hooks.rewrite("after", before) if before else before
    if after == before:
        return candidate
    text = tidy(clean_text(after))
    return _Candidate(replace(candidate.answer, observations=text), services.counter.count(text))


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__


def _best_answer(
    services: Services,
    loaded: Loaded,
    run: operations.Run,
    model: Model,
    messages: Sequence[Message],
    deadline: float,
) -> Flow[tuple[_Candidate, Message | None]]:
    """Ask until an answer is sound and short enough; else take the shortest sound one.

    Returns with it the last message it is about, if these are not all. Without a message (a hook
    has taken them out) there is nothing to ask and nothing to note.
    """
    if not messages:
        return _Candidate(Answer(Verdict.NOTHING), 0), None
    task = observer_task(services, loaded, messages)
    if services.config.observation.observe_attachments == "auto":
        # A model that does not tell what it can read is sent everything.
        task = replace(task, attachments=getattr(model, "supports_attachments", True))
    candidates: list[_Candidate] = []
    last: Message | None = None
    while task.level < ATTEMPTS:
        reply = yield from _call(services, run, model, task, deadline)
        if isinstance(reply, ContextTooLong) and (smaller := _smaller(task)) is not None:
            task = smaller
            last = task.messages[-1] if len(task.messages) < len(messages) else None
            run.operation.end_position = task.messages[-1].position
            run.operation.tokens_in = count_window(task.messages)
            candidates.clear()
            continue
        if isinstance(reply, PermanentModelError) and run.sent_attachments:
            # One file of a kind that the provider refuses must not stop all observing.
            task = replace(task, attachments=False)
            continue
        if isinstance(reply, ModelError):
            if candidates:
                break
            raise reply
        candidate = _judge(services, run, task, reply)
        answer = candidate.answer
        if answer.verdict.sound:
            candidates.append(candidate)
            if candidate.tokens < max(run.operation.tokens_in, SMALL):
                break
        task = replace(
            task, level=task.level + 1, reason=answer.detail or "it is longer than the messages"
        )
    if not candidates:
        raise ObservationFailed(f"no usable observation: {task.reason}")
    return min(candidates, key=lambda candidate: candidate.tokens), last


def observer_task(services: Services, loaded: Loaded, messages: Sequence[Message]) -> ObserverInput:
    """Return what the Observer is asked about some messages of a thread."""
    config = services.config
    sections: dict[str, str] = {}
    if config.observation.continuation_hints:
        for slug in ("current-task", "suggested-response"):
            sections[slug] = BUILT_IN_SECTIONS[slug]
    if config.observation.thread_title:
        sections["thread-title"] = BUILT_IN_SECTIONS["thread-title"]
    prior = {
        slug: str(loaded.cursor.values[slug]) for slug in sections if loaded.cursor.values.get(slug)
    }
    if "thread-title" in sections and loaded.thread.title:
        prior["thread-title"] = loaded.thread.title
    attachments = config.observation.observe_attachments
    return ObserverInput(
        messages=tuple(messages),
        attachments=True if attachments == "auto" else attachments,
        previous=join_texts(loaded.log),
        previous_tokens=config.observation.previous_observer_tokens,
        sections=sections,
        prior=prior,
        instruction=config.observation.instruction,
        language=config.language,
        zone=services.zone,
    )


def _smaller(task: ObserverInput) -> ObserverInput | None:
    """Return the task with about half of its messages, or with its one message cut in half."""
    half = safe_cut(task.messages, len(task.messages) // 2)
    if half:
        return replace(task, messages=task.messages[:half])
    limit = task.text_limit or max((m.tokens or 0) for m in task.messages)
    return replace(task, text_limit=limit // 2) if limit > 500 else None


def _call(
    services: Services,
    run: operations.Run,
    model: Model,
    task: ObserverInput,
    deadline: float,
) -> Flow[ModelResponse | ModelError]:
    prompt = build_observer_prompt(task, services.counter.count)
    settings = services.config.observer_settings
    request = ModelRequest(
        purpose="observe",
        system=prompt.system,
        prompt=prompt.prompt,
        attachments=prompt.attachments,
        temperature=settings.temperature,
        max_output_tokens=settings.max_output_tokens,
        provider_options=services.config.observation.provider_options,
        task=task,
    )
    run.sent_attachments = bool(prompt.attachments)
    return (yield from recorded_call(run, model, request, task.level, deadline))


def recorded_call(
    run: operations.Run, model: Model, request: ModelRequest, level: int, deadline: float
) -> Flow[ModelResponse | ModelError]:
    """Ask a model and keep the call for the audit trail."""
    begun = time.monotonic()
    reply = yield from ask(model, request, deadline)
    call = ModelCall(
        level=level,
        model=model.name[:255],
        system=clean_text(request.system),
        prompt=clean_text(request.prompt),
        duration_ms=round((time.monotonic() - begun) * 1000),
    )
    if isinstance(reply, ModelError):
        call.error = clean_text(_describe(reply))
        run.note(call, ModelResponse(text="").usage)
        return reply
    call.answer = clean_text(reply.text)
    call.finish_reason = reply.finish_reason
    call.input_tokens = reply.usage.input_tokens
    call.output_tokens = reply.usage.output_tokens
    call.cached_tokens = reply.usage.cached_tokens
    run.note(call, reply.usage)
    return replace(reply, text=call.answer)


def _judge(
    services: Services, run: operations.Run, task: ObserverInput, reply: ModelResponse
) -> _Candidate:
    answer = parse_observer_answer(reply.text, task, cut=reply.finish_reason == "length")
    if reply.finish_reason == "content-filter" and not answer.verdict.sound:
        answer = replace(answer, detail="the provider's content filter stopped the answer")
    run.calls[-1].verdict = answer.verdict.value
    run.calls[-1].error = answer.detail
    tokens = services.counter.count(answer.observations) if answer.observations else 0
    return _Candidate(answer, tokens)


def _save(
    services: Services,
    loaded: Loaded,
    run: operations.Run,
    model: Model,
    messages: Sequence[Message],
    candidate: _Candidate,
) -> None:
    now = services.now()
    answer = candidate.answer
    first, last = messages[0], messages[-1]
    with transaction.atomic():
        record = operations.save_end(run, now, tokens_out=candidate.tokens, model=model.name)
        thread = loaded.thread
        cursor = Cursor.objects.filter(
            record=record, thread=thread, position=first.position - 1
        ).first()
        if cursor is None:
            raise operations.Stale("the cursor has moved")
        values, changed = merge_values(cursor.values, answer.values)
        Cursor.objects.filter(pk=cursor.pk).update(position=last.position, values=values)
        ObservationGroup.objects.create(
            record=record,
            thread=thread,
            operation=run.operation,
            kind=GroupKind.OBSERVATION,
            state=GroupState.ACTIVE,
            sequence=record.last_sequence + 1,
            piece=0,
            generation=record.generation,
            text=answer.observations,
            tokens=candidate.tokens,
            first_message=int(first.id),
            last_message=int(last.id),
            first_position=first.position,
            last_position=last.position,
            message_count=len(messages),
            message_tokens=run.operation.tokens_in,
            observed_until=max(m.created_at for m in messages if m.created_at is not None),
        )
        MemoryRecord.objects.filter(pk=record.pk).update(
            last_sequence=record.last_sequence + 1,
            log_tokens=F("log_tokens") + candidate.tokens,
            observe_failures=0,
            observe_not_before=None,
        )
        save_extractions(run, thread, changed)
        events.ended(
            run.operation,
            thread,
            now,
            observations=answer.observations,
            values=changed,
            failures=[],
        )
        if services.config.observation.thread_title:
            update_title(run, thread, answer.values.get("thread-title", ""), now)


def merge_values(
    present: Mapping[str, JSON], new: Mapping[str, str]
) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Return the values to keep, and those that this cycle brought.

    A section that is absent keeps the value, an empty one clears it.
    """
    kept = dict(present)
    brought: dict[str, JSON] = {}
    for slug, value in new.items():
        if value:
            kept[slug] = brought[slug] = value
        else:
            kept.pop(slug, None)
    return kept, brought


def save_extractions(run: operations.Run, thread: Thread, values: Mapping[str, JSON]) -> None:
    Extraction.objects.bulk_create(
        Extraction(operation=run.operation, thread=thread, slug=slug, value=value)
        for slug, value in values.items()
    )


def update_title(run: operations.Run, thread: Thread, title: str, now: datetime) -> None:
    """Give the thread the proposed title, unless it is too short, the same, or pinned."""
    title = " ".join(title.split())[:255]
    if len(title) < MIN_TITLE_CHARS:
        return
    old = Thread.objects.values_list("title", flat=True).get(pk=thread.pk)
    # One statement decides: a title pinned by the user in this very moment stays.
    changed = (
        Thread.objects.filter(pk=thread.pk, title_pinned=False)
        .exclude(title=title)
        .update(title=title, updated_at=now)
    )
    if changed:
        events.title_changed(run.operation, thread, old, title, now)
