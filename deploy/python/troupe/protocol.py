"""The lines of the bridge: payloads, events, errors. No input or output happens here."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

if TYPE_CHECKING:
    from .bridge import Bridge

LINE_BYTES_MAX = 1048576
"""Of one line, either way, without its newline."""

JsonValue = Union[None, bool, int, float, str, List[Any], Dict[str, Any]]


class BridgeError(Exception):
    """The node has refused a request: what, the exit code of the tool that means it, and what to do."""

    def __init__(self, error: str, exit: int = 70, hint: str = "") -> None:
        super().__init__(f"{error} ({hint})" if hint else error)
        self.error = error
        self.exit = exit
        self.hint = hint


class BridgeClosed(BridgeError):
    """The bridge has ended: nothing more is sent or received."""

    def __init__(self, error: str = "the bridge has ended") -> None:
        super().__init__(error, 69)


@dataclass(frozen=True)
class Json:
    """Any value of JSON, as a message of type json."""

    value: JsonValue


@dataclass(frozen=True)
class Text:
    """A message of type string."""

    value: str


@dataclass(frozen=True)
class Bytes:
    """A message of type bytes."""

    value: bytes


@dataclass(frozen=True)
class Typed:
    """A message of a type that is registered on the node, by its fields."""

    type: str
    fields: Mapping[str, JsonValue]


Payload = Union[Json, Text, Bytes, Typed]
Sendable = Union[Payload, JsonValue, bytes]
"""What may be sent: a payload, or a plain value. str is Text, bytes is Bytes, all else Json."""


def payload_of(value: Sendable) -> Payload:
    if isinstance(value, (Json, Text, Bytes, Typed)):
        return value
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, bytes):
        return Bytes(value)
    return Json(value)


def payload_keys(value: Sendable) -> Dict[str, Any]:
    """The keys of a request that carry a message."""
    payload = payload_of(value)
    if isinstance(payload, Text):
        return {"text": payload.value}
    if isinstance(payload, Bytes):
        return {"base64": base64.b64encode(payload.value).decode("ascii")}
    if isinstance(payload, Typed):
        return {"type": payload.type, "json": dict(payload.fields)}
    return {"json": payload.value}


def payload_read(line: Mapping[str, Any]) -> Payload:
    """The message that an event or an answer carries."""
    if "text" in line:
        return Text(line["text"])
    if "base64" in line:
        return Bytes(base64.b64decode(line["base64"]))
    name = line.get("type", "json")
    value = line.get("json")
    return Json(value) if name == "json" or not isinstance(value, dict) else Typed(name, value)


@dataclass(frozen=True)
class Ready:
    """The node's greeting."""

    protocol: int
    version: str
    node: str
    path: str


@dataclass(frozen=True)
class Delivery:
    """The outcome of a publication: subscribers that have it, nodes that answered, and those that did not."""

    delivered: int
    nodes: int
    silent: int


@dataclass(frozen=True)
class ClusterEvent:
    """An event of the cluster, as `troupe events -o json` has it."""

    type: str
    fields: Mapping[str, Any]

    @property
    def snapshot(self) -> bool:
        """True: the present state, told at the beginning; no change."""
        return bool(self.fields.get("snapshot", False))

    @property
    def member(self) -> Optional[Mapping[str, Any]]:
        member = self.fields.get("member")
        return member if isinstance(member, dict) else None


@dataclass(frozen=True)
class Message:
    """A message for a hosted actor."""

    bridge: "Bridge"
    actor: str
    payload: Payload
    sender: Optional[str]
    """The path of the actor that told it; None: an ask, or nobody."""
    number: Optional[int]
    traceparent: Optional[str]

    @property
    def value(self) -> Union[JsonValue, bytes]:
        """The payload as a plain value."""
        payload = self.payload
        return dict(payload.fields) if isinstance(payload, Typed) else payload.value

    async def reply(self, value: Sendable) -> None:
        """Answer it: once. BridgeError: it has no sender, or was answered."""
        await self.bridge.request("reply", **self._keys(), **payload_keys(value))

    async def fail(self, error: str) -> None:
        """Fail the ask behind it. What of the error is no text of UTF-8, as parts of file names, is shown escaped."""
        text = error.encode("utf-8", "backslashreplace").decode("utf-8")
        await self.bridge.request("fail", error=text, **self._keys())

    def _keys(self) -> Dict[str, Any]:
        if self.number is None:
            raise BridgeError("the message has no sender", 68)
        keys: Dict[str, Any] = {"actor": self.actor, "reply": self.number}
        if self.traceparent is not None:
            keys["traceparent"] = self.traceparent
        return keys


def line_of(keys: Mapping[str, Any]) -> bytes:
    """A request as a line. BridgeError: it is longer than a line may be, or no text of UTF-8."""
    try:
        line = json.dumps(keys, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as wrong:
        raise BridgeError(f"the request cannot be sent: {wrong}", 65, "a file name: os.fsencode() as bytes") from None
    if len(line) > LINE_BYTES_MAX:
        raise BridgeError(f"the request has {len(line)} bytes; a line has at most {LINE_BYTES_MAX}", 65)
    return line + b"\n"
