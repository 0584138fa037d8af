"""An Observer and a Reflector made of rules, without a language model.

They quote, shorten, date and rank. They do not understand: no sentence is rephrased, nothing is
concluded, and what replaces what is left to the reader.
"""

from __future__ import annotations

from .observe import observe
from .reflect import reflect

__all__ = ["observe", "reflect"]
