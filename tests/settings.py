"""Settings of the suite: SQLite, or PostgreSQL when OM_TEST_DATABASE is set."""

from __future__ import annotations

import os

SECRET_KEY = "tests"
USE_TZ = True
TIME_ZONE = "UTC"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "om_django",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if os.environ.get("OM_TEST_DATABASE") == "postgres":
    from tests.services.postgres import database

    DATABASES = {"default": database()}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": ":memory:",
            "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
            # A file: threads of a test share it.
            "TEST": {"NAME": os.environ.get("OM_TEST_SQLITE", "/tmp/om_django_test.sqlite3")},
        }
    }

OM_DJANGO = {"MEMORIES": {"default": {"model": "offline/extractive"}}}
