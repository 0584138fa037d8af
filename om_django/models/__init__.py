from __future__ import annotations

from .event import Event, Extraction
from .group import GroupKind, GroupState, ObservationGroup
from .message import Message, Role
from .operation import LIVE_STATES, ModelCall, Operation, OperationKind, OperationState, Trigger
from .record import Cursor, MemoryRecord, Scope
from .thread import Thread

__all__ = [
    "LIVE_STATES",
    "Cursor",
    "Event",
    "Extraction",
    "GroupKind",
    "GroupState",
    "MemoryRecord",
    "Message",
    "ModelCall",
    "ObservationGroup",
    "Operation",
    "OperationKind",
    "OperationState",
    "Role",
    "Scope",
    "Thread",
    "Trigger",
]
