"""Signals of this package. Receivers run after the transaction has committed."""

from __future__ import annotations

from django.dispatch import Signal

#: A ``data-om-*`` part was recorded. Arguments: ``event`` (:class:`om_django.models.Event`).
event_recorded = Signal()

#: A cycle began or ended. Arguments: ``event`` (:class:`om_django.engine.hooks.HookEvent`).
observation_started = Signal()
observation_ended = Signal()
reflection_started = Signal()
reflection_ended = Signal()
