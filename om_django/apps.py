from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OMDjangoConfig(AppConfig):
    name = "om_django"
    verbose_name = _("Observational memory")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.core import checks
        from django.core.signals import setting_changed

        from .checks import check_settings
        from .observational import reset_memories

        checks.register(check_settings)
        setting_changed.connect(reset_memories, dispatch_uid="om_django.memories")
