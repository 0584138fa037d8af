"""Events and extractions: what happened, in the words of the wire, and the values it brought."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .operation import Operation
from .record import MemoryRecord
from .thread import Thread


class Event(models.Model):
    """A ``data-om-*`` part as it went out. Ids grow, so "since an id" is a complete resume."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="events")
    record = models.ForeignKey(MemoryRecord, models.CASCADE, related_name="events")
    operation = models.ForeignKey(
        Operation, models.CASCADE, null=True, blank=True, related_name="events"
    )
    type = models.CharField(_("type"), max_length=40)
    data = models.JSONField(_("data"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        indexes = (models.Index(fields=("thread", "id"), name="om_event_since"),)

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"


class Extraction(models.Model):
    """One value an operation extracted, or why it could not."""

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="extractions")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="extractions")
    slug = models.SlugField(_("slug"), max_length=100)
    value = models.JSONField(_("value"), null=True, blank=True)
    error = models.TextField(_("error"), blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("extraction")
        verbose_name_plural = _("extractions")
        constraints = (
            models.UniqueConstraint(
                fields=("operation", "thread", "slug"), name="om_extraction_once"
            ),
        )

    def __str__(self) -> str:
        return self.slug
