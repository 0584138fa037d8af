"""What ``manage.py om_demo`` is made of: reading, playing, drawing and reporting."""

from __future__ import annotations
