"""Operations: the work queue, the lease and the audit trail in one table."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from .fields import JSONTextField
from .record import MemoryRecord
from .thread import Thread


class OperationKind(models.TextChoices):
    OBSERVE = "observe", _("observe")
    BUFFER_OBSERVATION = "buffer-observation", _("buffer observation")
    REFLECT = "reflect", _("reflect")
    BUFFER_REFLECTION = "buffer-reflection", _("buffer reflection")


class OperationState(models.TextChoices):
    PENDING = "pending", _("pending")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


LIVE_STATES = (OperationState.PENDING.value, OperationState.RUNNING.value)


class Trigger(models.TextChoices):
    MANUAL = "manual", _("manual")
    TURN_SYNC = "turn-sync", _("turn")
    ASYNC_BUFFER = "async-buffer", _("background")


class Operation(models.Model):
    """One piece of work on a record. ``cycle_id`` is shared by all events of it.

    A running operation holds a lease: whoever saves its result must still hold ``lease_token``.
    ``start_position`` and ``end_position`` are the messages observed, both included;
    ``until_sequence`` is the last group reflected. Token numbers of the models as billed are sums
    over its calls.
    """

    cycle_id = models.UUIDField(_("cycle id"), default=uuid.uuid4, unique=True, editable=False)
    record = models.ForeignKey(MemoryRecord, models.CASCADE, related_name="operations")
    thread = models.ForeignKey(
        Thread, models.CASCADE, null=True, blank=True, related_name="operations"
    )
    kind = models.CharField(_("kind"), max_length=18, choices=OperationKind)
    state = models.CharField(
        _("state"), max_length=9, choices=OperationState, default=OperationState.PENDING
    )
    trigger = models.CharField(_("trigger"), max_length=12, choices=Trigger)
    generation = models.PositiveIntegerField(_("generation"))
    start_position = models.PositiveBigIntegerField(_("first message"), null=True, blank=True)
    end_position = models.PositiveBigIntegerField(_("last message"), null=True, blank=True)
    until_sequence = models.PositiveBigIntegerField(_("last group"), null=True, blank=True)
    tokens_in = models.PositiveIntegerField(_("tokens read"), default=0)
    tokens_out = models.PositiveIntegerField(_("tokens written"), default=0)
    attempt = models.PositiveSmallIntegerField(_("attempt"), default=0)
    lease_token = models.UUIDField(_("lease"), null=True, blank=True)
    lease_expires_at = models.DateTimeField(_("lease expires at"), null=True, blank=True)
    config = JSONTextField(_("configuration"), default=dict)
    model = models.CharField(_("model"), max_length=255, blank=True)
    input_tokens = models.PositiveBigIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveBigIntegerField(_("output tokens"), default=0)
    cached_tokens = models.PositiveBigIntegerField(_("cached tokens"), default=0)
    cost = models.DecimalField(
        _("cost (USD)"), max_digits=14, decimal_places=8, null=True, blank=True
    )
    error = models.TextField(_("error"), blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        indexes = (
            models.Index(
                fields=("lease_expires_at", "id"),
                condition=models.Q(state__in=LIVE_STATES),
                name="om_operation_live",
            ),
            models.Index(fields=("record", "-id"), name="om_operation_history"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("record", "kind"),
                condition=models.Q(state__in=LIVE_STATES),
                name="om_operation_one_live",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="running") | models.Q(lease_token__isnull=False),
                name="om_operation_running_leased",
            ),
            models.CheckConstraint(
                condition=models.Q(start_position__isnull=True, end_position__isnull=True)
                | models.Q(end_position__gte=models.F("start_position")),
                name="om_operation_range",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} ({self.state})"


class ModelCall(models.Model):
    """One call of a model inside an operation: what was asked, answered, and what it was worth."""

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="calls")
    number = models.PositiveSmallIntegerField(_("number"))
    level = models.PositiveSmallIntegerField(_("level"), default=0)
    model = models.CharField(_("model"), max_length=255)
    system = models.TextField(_("system"))
    prompt = models.TextField(_("prompt"))
    answer = models.TextField(_("answer"), blank=True)
    verdict = models.CharField(_("verdict"), max_length=16, blank=True)
    finish_reason = models.CharField(_("finish reason"), max_length=16, blank=True)
    error = models.TextField(_("error"), blank=True)
    input_tokens = models.PositiveBigIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveBigIntegerField(_("output tokens"), default=0)
    cached_tokens = models.PositiveBigIntegerField(_("cached tokens"), default=0)
    duration_ms = models.PositiveBigIntegerField(_("duration (ms)"), default=0)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        constraints = (
            models.UniqueConstraint(fields=("operation", "number"), name="om_call_number"),
        )

    def __str__(self) -> str:
        return f"{self.model} #{self.number}"
