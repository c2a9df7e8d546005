"""Actors of a Troupe node in Python, over `troupe bridge` (docs/bridge.md, docs/python.md)."""

from .bridge import Actor, Bridge, Watch, connect, supervised
from .protocol import (
    Bytes,
    BridgeClosed,
    BridgeError,
    ClusterEvent,
    Delivery,
    Json,
    JsonValue,
    Message,
    Payload,
    Ready,
    Text,
    Typed,
)

__all__ = [
    "Actor",
    "Bridge",
    "BridgeClosed",
    "BridgeError",
    "Bytes",
    "ClusterEvent",
    "Delivery",
    "Json",
    "JsonValue",
    "Message",
    "Payload",
    "Ready",
    "Text",
    "Typed",
    "Watch",
    "connect",
    "supervised",
]
