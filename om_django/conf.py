"""The ``OM_DJANGO`` setting.

``OM_DJANGO = {"MEMORIES": {"default": {...options...}}}``; a memory may also be a dotted path to
an :class:`~om_django.observational.ObservationalMemory`. Read on first use, never at import, and
again after a change of settings in tests.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

KEYS = ("MEMORIES",)


def memory_settings() -> dict[str, Any]:
    """Return the options of each memory by name; without any, ``default`` with all defaults."""
    given = getattr(settings, "OM_DJANGO", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("OM_DJANGO must be a dict such as {'MEMORIES': {'default': {}}}")
    for key in given:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key).upper(), KEYS, n=1)
            hint = f", did you mean {near[0]!r}?" if near else f": use one of {', '.join(KEYS)}"
            raise ImproperlyConfigured(f"OM_DJANGO[{key!r}] is not a setting{hint}")
    memories = given.get("MEMORIES", {"default": {}})
    if not isinstance(memories, Mapping) or not memories:
        raise ImproperlyConfigured("OM_DJANGO['MEMORIES'] must be a dict with at least one memory")
    for name in memories:
        if not isinstance(name, str) or not 1 <= len(name) <= 64:
            raise ImproperlyConfigured(
                f"OM_DJANGO['MEMORIES'] has a name that is no text of 1 to 64 characters: {name!r}"
            )
    return dict(memories)
