"""Messages: immutable, ordered by a position given under the thread's lock."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from om_django.core.messages import Message as CoreMessage
from om_django.core.messages import part_from_json

from .fields import JSONTextField
from .thread import Thread


class Role(models.TextChoices):
    SYSTEM = "system", _("system")
    USER = "user", _("user")
    ASSISTANT = "assistant", _("assistant")
    TOOL = "tool", _("tool")


class Message(models.Model):
    """One message. ``tokens`` counts its payload, ``part_tokens`` the same part by part."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages")
    position = models.PositiveBigIntegerField(_("position"))
    role = models.CharField(_("role"), max_length=9, choices=Role)
    parts = JSONTextField(_("parts"), default=list)
    client_id = models.CharField(_("client id"), max_length=255, null=True, blank=True)  # noqa: DJ001
    model = models.CharField(
        _("model"),
        max_length=255,
        blank=True,
        help_text=_("provider/model of an assistant message"),
    )
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    tokens = models.PositiveIntegerField(_("tokens"))
    part_tokens = JSONTextField(_("tokens by part"), default=list)
    tokenizer = models.CharField(_("tokenizer"), max_length=64)
    created_at = models.DateTimeField(_("created at"), help_text=_("When it was said."))
    stored_at = models.DateTimeField(_("stored at"), auto_now_add=True)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = (
            # Also the index of the window query.
            models.UniqueConstraint(fields=("thread", "position"), name="om_message_position"),
            models.UniqueConstraint(
                fields=("thread", "client_id"),
                condition=models.Q(client_id__isnull=False),
                name="om_message_client_id",
            ),
            models.CheckConstraint(
                condition=models.Q(position__gte=1), name="om_message_position_from_1"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=[value for value, _label in Role.choices]),
                name="om_message_role_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} {self.position}"

    def to_core(self, thread_key: str = "") -> CoreMessage:
        """Return the message as the core knows it."""
        return CoreMessage(
            role=self.role,  # type: ignore[arg-type] # a constraint of the table
            parts=tuple(map(part_from_json, self.parts)),
            id=str(self.pk),
            position=self.position,
            thread=thread_key,
            client_id=self.client_id,
            created_at=self.created_at,
            model=self.model,
            metadata=self.metadata,
            tokens=self.tokens,
            part_tokens=tuple(self.part_tokens),
        )
