"""Memory records: what a memory knows of a thread or of all threads of a resource."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .thread import Thread


class Scope(models.TextChoices):
    THREAD = "thread", _("thread")
    RESOURCE = "resource", _("resource")


class MemoryRecord(models.Model):
    """One memory of one thread or resource: the head of its observation log.

    ``generation`` grows by one with every reflection. ``version`` grows with every change and is
    written first in a transaction: that write is the lock.
    """

    memory = models.CharField(_("memory"), max_length=64)
    scope = models.CharField(_("scope"), max_length=8, choices=Scope)
    key = models.CharField(_("key"), max_length=255, help_text=_("Thread key or resource."))
    thread = models.ForeignKey(
        Thread, models.CASCADE, null=True, blank=True, related_name="memory_records"
    )
    generation = models.PositiveIntegerField(_("generation"), default=0)
    log_tokens = models.PositiveIntegerField(_("log tokens"), default=0)
    last_sequence = models.PositiveBigIntegerField(_("last sequence"), default=0)
    version = models.PositiveBigIntegerField(_("version"), default=0)
    observe_failures = models.PositiveSmallIntegerField(_("failed observations"), default=0)
    observe_not_before = models.DateTimeField(_("no observation before"), null=True, blank=True)
    reflect_failures = models.PositiveSmallIntegerField(_("failed reflections"), default=0)
    reflect_not_before = models.DateTimeField(_("no reflection before"), null=True, blank=True)
    reflect_above = models.PositiveIntegerField(
        _("no reflection up to"),
        default=0,
        help_text=_(
            "A log that could not be brought below the threshold must first grow past this."
        ),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("memory record")
        verbose_name_plural = _("memory records")
        constraints = (
            models.UniqueConstraint(fields=("memory", "scope", "key"), name="om_record_key"),
            models.CheckConstraint(
                condition=models.Q(scope="thread", thread__isnull=False)
                | models.Q(scope="resource", thread__isnull=True),
                name="om_record_scope_owner",
            ),
        )

    def __str__(self) -> str:
        return f"{self.memory}: {self.scope} {self.key}"


class Cursor(models.Model):
    """How far a memory has observed a thread: messages up to ``position`` have left its window.

    ``values`` are the present extracted values of the thread by slug.
    """

    record = models.ForeignKey(MemoryRecord, models.CASCADE, related_name="cursors")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="cursors")
    position = models.PositiveBigIntegerField(_("observed position"), default=0)
    values = models.JSONField(_("values"), default=dict, blank=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("cursor")
        verbose_name_plural = _("cursors")
        constraints = (models.UniqueConstraint(fields=("record", "thread"), name="om_cursor_once"),)

    def __str__(self) -> str:
        return f"{self.record_id}/{self.thread_id} @ {self.position}"
