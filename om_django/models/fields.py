"""A JSON column that keeps key order and number spelling on every database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

from om_django.core.messages import dump_json
from om_django.core.text import clean_json

if TYPE_CHECKING:
    _Base = models.TextField[Any, Any]
else:
    _Base = models.TextField


class JSONTextField(_Base):
    """JSON kept as text.

    PostgreSQL's jsonb sorts keys and rewrites numbers; what a model once read must come back as it
    was, or a cached prompt changes. NUL and lone surrogates are replaced on the way in, see
    :func:`om_django.core.text.clean_text`.
    """

    description = "JSON as text"

    # For the type checker: any JSON goes in and comes out.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any
    _pyi_lookup_exact_type: Any

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else dump_json(clean_json(value))

    def value_to_string(self, obj: models.Model) -> str:
        return dump_json(self.value_from_object(obj))
