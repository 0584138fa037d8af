"""Threads: the conversations."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Thread(models.Model):
    """One conversation. ``key`` is the caller's thread id, ``resource`` whom it belongs to."""

    key = models.CharField(_("key"), max_length=255, unique=True)
    resource = models.CharField(_("resource"), max_length=255, blank=True)
    title = models.CharField(_("title"), max_length=255, blank=True)
    title_pinned = models.BooleanField(
        _("title pinned"), default=False, help_text=_("A pinned title is never replaced.")
    )
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    last_position = models.PositiveBigIntegerField(
        _("last position"), default=0, help_text=_("Position of the newest message.")
    )
    last_message_at = models.DateTimeField(_("last message at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("thread")
        verbose_name_plural = _("threads")
        indexes = (
            models.Index(fields=("resource", "-last_message_at", "-id"), name="om_thread_recent"),
        )
        constraints = (
            models.CheckConstraint(condition=~models.Q(key=""), name="om_thread_key_given"),
        )

    def __str__(self) -> str:
        return self.title or self.key
