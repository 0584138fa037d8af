"""Observation groups: the pieces of a log, each tied to the messages it came from."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .operation import Operation
from .record import MemoryRecord
from .thread import Thread


class GroupKind(models.TextChoices):
    OBSERVATION = "observation", _("observation")
    REFLECTION = "reflection", _("reflection")


class GroupState(models.TextChoices):
    BUFFERED = "buffered", _("buffered")
    ACTIVE = "active", _("active")
    SUPERSEDED = "superseded", _("superseded")


class ObservationGroup(models.Model):
    """One observation or one piece of a reflection.

    It stands in the generations from ``generation`` up to, but not including,
    ``closed_generation``; an active one is not closed. The log is ordered by ``sequence`` and
    ``piece``: the pieces of a reflection have the sequence of the last group they replace.
    ``first_message`` and ``last_message`` are message ids; positions are in ``thread``. A text may
    be empty: the messages were read, and there was nothing to note.
    """

    record = models.ForeignKey(MemoryRecord, models.CASCADE, related_name="groups")
    thread = models.ForeignKey(Thread, models.CASCADE, null=True, blank=True, related_name="groups")
    operation = models.ForeignKey(Operation, models.CASCADE, related_name="groups")
    kind = models.CharField(_("kind"), max_length=11, choices=GroupKind)
    state = models.CharField(_("state"), max_length=10, choices=GroupState)
    sequence = models.PositiveBigIntegerField(_("sequence"))
    piece = models.PositiveIntegerField(_("piece"), default=0)
    generation = models.PositiveIntegerField(_("generation"))
    closed_generation = models.PositiveIntegerField(
        _("closed in generation"), null=True, blank=True
    )
    text = models.TextField(_("text"), blank=True)
    tokens = models.PositiveIntegerField(_("tokens"))
    first_message = models.PositiveBigIntegerField(_("first message"))
    last_message = models.PositiveBigIntegerField(_("last message"))
    first_position = models.PositiveBigIntegerField(_("first position"))
    last_position = models.PositiveBigIntegerField(_("last position"))
    message_count = models.PositiveIntegerField(_("messages"))
    message_tokens = models.PositiveIntegerField(_("message tokens"))
    observed_until = models.DateTimeField(
        _("observed until"), help_text=_("When the newest of its messages was said.")
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("observation group")
        verbose_name_plural = _("observation groups")
        indexes = (
            models.Index(
                fields=("record", "sequence", "piece"),
                condition=~models.Q(state="superseded"),
                name="om_group_log",
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("record", "sequence", "piece", "generation"), name="om_group_sequence"
            ),
            # No message is observed twice: a range begins and ends where no other one does.
            models.UniqueConstraint(
                fields=("record", "thread", "first_position"),
                condition=models.Q(kind="observation"),
                name="om_group_begins_once",
            ),
            models.UniqueConstraint(
                fields=("record", "thread", "last_position"),
                condition=models.Q(kind="observation"),
                name="om_group_ends_once",
            ),
            models.CheckConstraint(
                condition=models.Q(last_position__gte=models.F("first_position")),
                name="om_group_range",
            ),
            models.CheckConstraint(
                condition=models.Q(state="superseded", closed_generation__gt=models.F("generation"))
                | (~models.Q(state="superseded") & models.Q(closed_generation__isnull=True)),
                name="om_group_closed",
            ),
            models.CheckConstraint(
                condition=models.Q(kind="reflection") | models.Q(thread__isnull=False),
                name="om_group_of_thread",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} ({self.first_message}:{self.last_message})"
