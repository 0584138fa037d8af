"""Signals of this package. Receivers run after the transaction has committed."""

from __future__ import annotations

from django.dispatch import Signal

#: A ``data-om-*`` part was recorded. Arguments: ``event`` (:class:`om_django.models.Event`).
event_recorded = Signal()
