from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

import om_django

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run_python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_version_is_the_same_everywhere(pyproject: dict[str, Any]) -> None:
    version = pyproject["project"]["version"]

    assert om_django.__version__ == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_metadata_is_complete(pyproject: dict[str, Any]) -> None:
    project = pyproject["project"]

    assert project["requires-python"] == ">=3.11"
    assert (ROOT / project["readme"]).read_text(encoding="utf-8").startswith("# ")
    assert all((ROOT / name).is_file() for name in project["license-files"])
    assert "Typing :: Typed" in project["classifiers"]
    assert all(any(mark in line for mark in "<>=") for line in project["dependencies"])


def test_the_extras_of_dev_exist(pyproject: dict[str, Any]) -> None:
    extras = pyproject["project"]["optional-dependencies"]
    own = next(line for line in extras["dev"] if line.startswith("om-django["))

    assert set(own.partition("[")[2].rstrip("]").split(",")) <= set(extras)


def test_what_is_no_module_lies_inside_the_package(pyproject: dict[str, Any]) -> None:
    packages = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert packages == ["om_django"]
    assert (ROOT / "om_django" / "data" / "demo.jsonl").is_file()
    assert (ROOT / "om_django" / "py.typed").is_file()


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "om_django", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_migrations_can_be_reversed() -> None:
    def tables() -> set[str]:
        return {
            name for name in connection.introspection.table_names() if name.startswith("om_django_")
        }

    before = tables()
    try:
        call_command("migrate", "om_django", "zero", verbosity=0)
        left = tables()
    finally:
        call_command("migrate", "om_django", verbosity=0)

    assert left == set()
    assert tables() == before != set()


def test_the_example_project_passes_its_checks(tmp_path: Path) -> None:
    done = run_python(
        "manage.py",
        "check",
        "--fail-level",
        "WARNING",
        DJANGO_SETTINGS_MODULE="example_project.settings",
        OM_EXAMPLE_SQLITE=str(tmp_path / "check.sqlite3"),
    )

    assert done.returncode == 0, done.stderr


def test_importing_the_package_needs_no_settings_and_no_models() -> None:
    code = (
        "import json, sys, om_django\n"
        "unwanted = ('om_django.', 'django.db', 'tiktoken')\n"
        "names = [name for name in sys.modules if name.startswith(unwanted)]\n"
        "sys.stdout.write(json.dumps(names))"
    )
    env = {**os.environ}
    env.pop("DJANGO_SETTINGS_MODULE", None)

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
