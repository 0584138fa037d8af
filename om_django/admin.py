"""A read-only admin: everything can be read and traced, nothing can be changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from . import models

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = admin.ModelAdmin

PREVIEW_CHARS = 120


class ReadOnlyAdmin(_Base):
    """Lists without the big columns, and pages without a form.

    ``big_fields`` are left out of lists and shown as they are on the page of one object;
    ``preview_field`` is the one whose beginning the list shows.
    """

    big_fields: ClassVar[tuple[str, ...]] = ()
    preview_field: ClassVar[str] = ""
    show_full_result_count = False
    list_per_page = 50
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found = super().get_queryset(request).defer(*self.big_fields)
        if self.preview_field:
            found = found.annotate(_preview=Left(self.preview_field, PREVIEW_CHARS))
        return found

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        names = [f.name for f in self.model._meta.fields if f.name not in self.big_fields]
        return [*names, *(_as_is(self.model, name) for name in self.big_fields)]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return self.get_fields(request, obj)

    @admin.display(description=_("beginning"))
    def preview(self, obj: Any) -> str:
        text: str = obj._preview or ""
        return f"{text} …" if len(text) >= PREVIEW_CHARS else text


def _as_is(model: type[Model], name: str) -> Any:
    """Return a column of the page that shows a text or JSON value with its line breaks."""

    @admin.display(description=model._meta.get_field(name).verbose_name)  # type: ignore[union-attr]
    def column(obj: Any) -> SafeString:
        value = getattr(obj, name)
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, indent=2)
        style = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 0"
        return format_html('<pre style="{}">{}</pre>', style, value)

    column.__name__ = name
    return column


@admin.register(models.Thread)
class ThreadAdmin(ReadOnlyAdmin):
    list_display = ("key", "title", "resource", "last_position", "last_message_at", "related")
    search_fields = ("key", "title", "=resource")
    big_fields = ("metadata",)
    ordering = ("-last_message_at", "-pk")

    @admin.display(description=_("what belongs to it"))
    def related(self, obj: models.Thread) -> SafeString:
        links = []
        for model in (
            models.Message,
            models.ObservationGroup,
            models.Operation,
            models.Event,
            models.Extraction,
        ):
            address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            links.append((address, obj.pk, model._meta.verbose_name_plural))
        return format_html_join(" · ", '<a href="{}?thread__id__exact={}">{}</a>', links)


@admin.register(models.Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("position", "thread", "role", "tokens", "created_at", "preview")
    list_filter = ("role",)
    list_select_related = ("thread",)
    search_fields = ("=thread__key", "=client_id")
    raw_id_fields = ("thread",)
    big_fields = ("parts", "part_tokens", "metadata")
    preview_field = "parts"
    ordering = ("-pk",)


@admin.register(models.MemoryRecord)
class MemoryRecordAdmin(ReadOnlyAdmin):
    list_display = ("memory", "scope", "key", "generation", "log_tokens", "updated_at")
    list_filter = ("scope",)
    search_fields = ("=memory", "key")
    raw_id_fields = ("thread",)


@admin.register(models.ObservationGroup)
class ObservationGroupAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "thread",
        "kind",
        "state",
        "generation",
        "range",
        "message_tokens",
        "tokens",
        "preview",
    )
    list_filter = ("state", "kind")
    list_select_related = ("thread",)
    search_fields = ("=thread__key", "=record__key")
    raw_id_fields = ("record", "thread", "operation")
    big_fields = ("text",)
    preview_field = "text"

    @admin.display(description=_("messages"))
    def range(self, obj: models.ObservationGroup) -> str:
        return f"{obj.first_position}–{obj.last_position}"


@admin.register(models.Operation)
class OperationAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "thread",
        "kind",
        "state",
        "trigger",
        "generation",
        "tokens_in",
        "tokens_out",
        "model",
        "started_at",
        "calls",
    )
    list_filter = ("state", "kind", "trigger")
    list_select_related = ("thread",)
    search_fields = ("=thread__key", "=cycle_id", "=record__key")
    raw_id_fields = ("record", "thread")
    big_fields = ("config", "error")

    @admin.display(description=_("model calls"))
    def calls(self, obj: models.Operation) -> SafeString:
        address = reverse("admin:om_django_modelcall_changelist")
        return format_html(
            '<a href="{}?operation__id__exact={}">{}</a>', address, obj.pk, _("show")
        )


@admin.register(models.ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "operation",
        "number",
        "level",
        "model",
        "verdict",
        "input_tokens",
        "output_tokens",
        "duration_ms",
    )
    list_filter = ("verdict",)
    list_select_related = ("operation",)
    search_fields = ("=operation__cycle_id", "=operation__thread__key", "=model")
    raw_id_fields = ("operation",)
    big_fields = ("system", "prompt", "answer", "error")


@admin.register(models.Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("id", "thread", "type", "operation", "created_at")
    list_filter = ("type",)
    list_select_related = ("thread", "operation")
    search_fields = ("=thread__key", "=operation__cycle_id")
    raw_id_fields = ("thread", "record", "operation")
    big_fields = ("data",)


@admin.register(models.Extraction)
class ExtractionAdmin(ReadOnlyAdmin):
    list_display = ("id", "thread", "slug", "operation", "created_at")
    list_filter = ("slug",)
    list_select_related = ("thread", "operation")
    search_fields = ("=thread__key", "=slug")
    raw_id_fields = ("operation", "thread")
    big_fields = ("value", "error")
