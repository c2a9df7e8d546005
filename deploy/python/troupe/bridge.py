"""A bridge to a node, and the actors that this program hosts there.

One task reads the lines of the node. Each hosted actor has a task and a queue of its own, and handles one message at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import json
import logging
import os
import socket
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .protocol import (
    LINE_BYTES_MAX,
    BridgeClosed,
    BridgeError,
    ClusterEvent,
    Delivery,
    Message,
    Payload,
    Ready,
    Sendable,
    line_of,
    payload_keys,
    payload_read,
)

log = logging.getLogger("troupe")

QUEUE_MESSAGES = 1000
"""Messages of one actor that wait here before no more lines are read, unless an answer is awaited."""
QUEUE_MESSAGES_MAX = 10000
"""Messages of one actor that wait at most: one more is dropped, and fails its ask."""

CLOSE_SECONDS = 5.0
"""close() waits so long for the node."""

_traceparent: "contextvars.ContextVar[Optional[str]]" = contextvars.ContextVar("troupe_traceparent", default=None)

Handler = Callable[[Message], Awaitable[None]]


class Actor:
    """A hosted actor. A failure of a handler is logged, and fails the ask behind its message; the actor goes on."""

    bridge: "Bridge"
    name: str
    path: str

    async def started(self) -> None:
        """Called once it is hosted, before its first message."""

    async def receive(self, message: Message) -> None:
        """Handle one message."""
        raise NotImplementedError

    async def stopped(self) -> None:
        """Called when it handles no more messages."""

    async def tell(self, to: str, value: Sendable) -> None:
        await self.bridge.tell(to, value, actor=self.name)

    async def ask(self, to: str, value: Sendable, timeout: float = 5.0) -> Payload:
        return await self.bridge.ask(to, value, timeout, actor=self.name)

    async def watch(self, to: str, timeout: float = 5.0) -> "Watch":
        return await self.bridge.watch(to, timeout, actor=self.name)

    async def subscribe(self, topic: str, group: Optional[str] = None) -> None:
        await self.bridge.subscribe(self.name, topic, group)

    async def publish(self, topic: str, value: Sendable) -> Delivery:
        return await self.bridge.publish(topic, value, actor=self.name)


class _Function(Actor):
    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def receive(self, message: Message) -> None:
        await self._handler(message)


class Watch:
    """A watch of an actor: await terminated() for its end."""

    def __init__(self, to: str) -> None:
        self.to = to
        self._end: "asyncio.Future[bool]" = asyncio.get_running_loop().create_future()

    async def terminated(self) -> bool:
        """Wait for the end of the actor. True: its node was lost."""
        return await asyncio.shield(self._end)


async def _process_end(process: asyncio.subprocess.Process, timeout: float) -> int:
    """Wait for the tool, and kill it when it is late. Its exit code; 75: it was killed."""
    try:
        await asyncio.wait_for(process.wait(), timeout)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.returncode is not None
    return process.returncode if process.returncode >= 0 else 75


class _Hosted:
    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.queue: "asyncio.Queue[Optional[Message]]" = asyncio.Queue()
        self.task: Optional["asyncio.Task[None]"] = None
        self.ended = False
        """It takes no more messages."""


class Bridge:
    """The node's side is /user/NAME. Made by connect(); close() ends it, as the end of `async with` does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._process: Optional[asyncio.subprocess.Process] = None
        self._numbers = itertools.count(1)
        self._answers: "Dict[int, asyncio.Future[Mapping[str, Any]]]" = {}
        self._hosted: Dict[str, _Hosted] = {}
        self._watches: Dict[Tuple[str, str], List[Watch]] = {}
        self._listeners: "Set[asyncio.Queue[Optional[ClusterEvent]]]" = set()
        self._room = asyncio.Event()
        self._room.set()
        self._ready: "asyncio.Future[Ready]" = asyncio.get_running_loop().create_future()
        self._closing = False
        self._closed = asyncio.Event()
        self._why = BridgeClosed()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    # ---- life

    @property
    def ready(self) -> Ready:
        return self._ready.result()

    async def __aenter__(self) -> "Bridge":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def wait_closed(self) -> None:
        """Wait until the node has ended the bridge, or close() was called."""
        await self._closed.wait()

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """End the bridge: its actors stop. A node that has not ended it in time is left without a word."""
        self._closing = True
        self._room.set()  # what still comes is read, and dropped
        self._writer.close()
        await asyncio.wait({self._reading}, timeout=timeout)
        if self._process is not None:
            await _process_end(self._process, timeout if self._reading.done() else 0)
        elif not self._reading.done():
            self._writer.transport.abort()
        await self._reading
        tasks = [hosted.task for hosted in self._hosted.values() if hosted.task is not None]
        await asyncio.gather(*(task for task in tasks if task is not asyncio.current_task()))

    # ---- requests

    async def request(self, op: str, **keys: Any) -> Mapping[str, Any]:
        """Send any request, and wait for its answer. BridgeError: it was refused."""
        if self._closed.is_set():
            raise self._why
        number = next(self._numbers)
        line = line_of({"op": op, "id": number, **keys})
        answer: "asyncio.Future[Mapping[str, Any]]" = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._room.set()  # the reader must read on, however full the queues are
        try:
            self._writer.write(line)
            await self._writer.drain()
            reply = await answer
        except (BrokenPipeError, ConnectionResetError):
            raise self._why from None
        finally:
            del self._answers[number]
        if not reply.get("ok", False):
            raise BridgeError(str(reply.get("error", "")), int(reply.get("exit", 70)), str(reply.get("hint", "")))
        return reply

    async def host(self, name: str, actor: Union[Actor, Handler]) -> str:
        """Host an actor, or a function that handles messages, at /user/BRIDGE/NAME. Returns the path."""
        hosted = _Hosted(actor if isinstance(actor, Actor) else _Function(actor))
        if name in self._hosted:
            raise BridgeError(f"this program hosts an actor '{name}' already", 1)
        self._hosted[name] = hosted  # its first message may come with the answer
        try:
            reply = await self.request("host", actor=name)
        except BaseException:
            del self._hosted[name]
            raise
        hosted.actor.bridge = self
        hosted.actor.name = name
        hosted.actor.path = str(reply["path"])
        hosted.task = asyncio.get_running_loop().create_task(self._run(hosted))
        return hosted.actor.path

    async def stop(self, name: str) -> None:
        """Stop a hosted actor; its messages that wait here are handled first."""
        hosted = self._hosted.get(name)
        await self.request("stop", actor=name)
        if hosted is not None:
            hosted.queue.put_nowait(None)
            self._hosted.pop(name, None)
            if hosted.task is not None and hosted.task is not asyncio.current_task():
                await hosted.task

    async def tell(self, to: str, value: Sendable, *, actor: str = "") -> None:
        """Tell the actors at a path, in the name of a hosted one."""
        await self.request("tell", to=to, **payload_keys(value), **self._as(actor))

    async def ask(self, to: str, value: Sendable, timeout: float = 5.0, *, actor: str = "") -> Payload:
        """Ask the actor at a path. BridgeError: it failed (exit 1), is not there (68), or has not answered (75)."""
        keys = {**payload_keys(value), **self._as(actor)}
        return payload_read(await self.request("ask", to=to, timeoutMs=max(1, int(timeout * 1000)), **keys))

    async def watch(self, to: str, timeout: float = 5.0, *, actor: str = "") -> Watch:
        """Watch the actor at a path. BridgeError: it is not there."""
        watch = Watch(to)
        self._watches.setdefault((actor, to), []).append(watch)
        try:
            await self.request("watch", to=to, timeoutMs=max(1, int(timeout * 1000)), **({"actor": actor} if actor else {}))
        except BaseException:
            self._forget(watch, actor)
            raise
        return watch

    def _forget(self, watch: Watch, actor: str) -> bool:
        """It is not waited for. True: it was the last one of the actor at its path."""
        watches = self._watches.get((actor, watch.to), [])  # none: the end was told meanwhile
        if watch not in watches:
            return False
        watches.remove(watch)
        if not watches:
            del self._watches[(actor, watch.to)]
        return not watches

    async def unwatch(self, watch: Watch, *, actor: str = "") -> None:
        if self._forget(watch, actor):
            await self.request("unwatch", to=watch.to, **({"actor": actor} if actor else {}))

    async def subscribe(self, actor: str, topic: str, group: Optional[str] = None) -> None:
        """Publications to the topic come to a hosted actor from now on; of a group one actor gets each."""
        await self.request("subscribe", actor=actor, topic=topic, **({"group": group} if group else {}))

    async def unsubscribe(self, actor: str, topic: str, group: Optional[str] = None) -> None:
        await self.request("unsubscribe", actor=actor, topic=topic, **({"group": group} if group else {}))

    async def publish(self, topic: str, value: Sendable, *, actor: str = "") -> Delivery:
        """Publish to a topic of the cluster, and wait for the outcome."""
        reply = await self.request("publish", topic=topic, **payload_keys(value), **self._as(actor))
        return Delivery(int(reply["delivered"]), int(reply["nodes"]), int(reply["silent"]))

    async def events(self, types: Optional[Sequence[str]] = None) -> AsyncIterator[ClusterEvent]:
        """Iterate over events of the cluster, the present members first. One iterator at a time."""
        queue: "asyncio.Queue[Optional[ClusterEvent]]" = asyncio.Queue()
        if self._listeners:
            raise BridgeError("events are iterated over already", 64)
        self._listeners.add(queue)
        try:
            await self.request("events", **({"types": list(types)} if types is not None else {}))
            while True:
                event = await queue.get()
                if event is None:
                    return
                yield event
        finally:
            self._listeners.discard(queue)
            if not self._closed.is_set():
                await self.request("events", types=[])

    async def ping(self) -> None:
        await self.request("ping")

    # ---- inside

    @staticmethod
    def _as(actor: str) -> Dict[str, Any]:
        keys: Dict[str, Any] = {"actor": actor} if actor else {}
        trace = _traceparent.get()
        if trace is not None:
            keys["traceparent"] = trace
        return keys

    async def _run(self, hosted: _Hosted) -> None:
        actor = hosted.actor
        try:
            await actor.started()
            while True:
                message = await hosted.queue.get()
                self._room_look()
                if message is None:
                    return
                await self._handle(actor, message)
        except BridgeClosed:
            pass
        except Exception:
            log.exception("actor %s failed as it started; it handles nothing", actor.name)
        finally:
            self._drop_waiting(hosted)
            await actor.stopped()

    def _drop_waiting(self, hosted: _Hosted) -> None:
        hosted.ended = True
        while not hosted.queue.empty():
            message = hosted.queue.get_nowait()
            if message is not None:
                self._refuse(message)
        self._room_look()

    def _refuse(self, message: Message) -> None:
        """Nobody takes the message: the ask behind it fails."""
        is_over = self._closing or self._closed.is_set()
        if message.number is not None and message.sender is None and not is_over:
            self._writer.write(line_of({"op": "fail", "actor": message.actor, "reply": message.number,
                                        "error": "the actor does not take it"}))

    async def _handle(self, actor: Actor, message: Message) -> None:
        token = _traceparent.set(message.traceparent)
        try:
            await actor.receive(message)
        except BridgeClosed:
            raise
        except Exception as failure:
            log.exception("actor %s failed; it goes on with its next message", actor.name)
            if message.number is not None and message.sender is None:
                try:
                    await message.fail(f"{type(failure).__name__}: {failure}")
                except BridgeClosed:
                    raise
                except Exception as refused:  # also of a failure that has no text
                    log.warning("the failure was not told: %s", refused)
        finally:
            _traceparent.reset(token)

    def _room_look(self) -> None:
        if self._answers or all(h.queue.qsize() < QUEUE_MESSAGES for h in self._hosted.values()):
            self._room.set()

    async def _read(self) -> None:
        try:
            while True:
                await self._room.wait()
                line = await self._reader.readline()
                if not line.endswith(b"\n"):
                    break
                self._take(json.loads(line))
        except Exception as broken:  # also a line that another version of the node may write
            self._why = BridgeClosed(f"the bridge has broken: {type(broken).__name__}: {broken}")
        self._end()

    def _end(self) -> None:
        self._closed.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._why)
        if not self._ready.done():
            self._ready.set_exception(self._why)
        for hosted in self._hosted.values():
            hosted.queue.put_nowait(None)
        for queue in self._listeners:
            queue.put_nowait(None)
        for watches in self._watches.values():
            for watch in watches:
                if not watch._end.done():
                    watch._end.set_exception(self._why)
                    watch._end.exception()  # nobody may wait for it

    def _take(self, line: Mapping[str, Any]) -> None:
        event = line.get("event")
        if "id" in line:
            answer = self._answers.get(int(line["id"]))
            if answer is not None and not answer.done():
                answer.set_result(line)
        elif event == "message":
            self._take_message(line)
        elif event == "terminated":
            for watch in self._watches.pop((str(line["actor"]), str(line["to"])), []):
                if not watch._end.done():
                    watch._end.set_result(bool(line.get("nodeLost", False)))
        elif event == "cluster":
            fields = {key: value for key, value in line.items() if key not in ("event", "type")}
            for queue in self._listeners:
                queue.put_nowait(ClusterEvent(str(line["type"]), fields))
        elif event == "ready" and not self._ready.done():
            self._ready.set_result(
                Ready(int(line["protocol"]), str(line["version"]), str(line["node"]), str(line["path"]))
            )
        elif event == "error":
            log.error("the node refused a line: %s (%s)", line.get("error"), line.get("hint", ""))

    def _take_message(self, line: Mapping[str, Any]) -> None:
        if self._closing:
            return
        name = str(line["actor"])
        message = Message(
            self, name, payload_read(line), line.get("from"), line.get("reply"), line.get("traceparent")
        )
        hosted = self._hosted.get(name)
        if hosted is None or hosted.ended or hosted.queue.qsize() >= QUEUE_MESSAGES_MAX:
            log.warning("a message for actor '%s' is dropped: %s", name,
                        "it is not hosted" if hosted is None
                        else "it has ended" if hosted.ended else f"{QUEUE_MESSAGES_MAX} wait already")
            self._refuse(message)
            return
        hosted.queue.put_nowait(message)
        if hosted.queue.qsize() >= QUEUE_MESSAGES and not self._answers:
            self._room.clear()


async def connect(
    name: Optional[str] = None, *, program: str = "troupe", options: Sequence[str] = (), timeout: float = 30.0
) -> Bridge:
    """Start `troupe bridge NAME` and wait for the node's greeting.

    options: more of the command line, such as ("--socket", PATH). BridgeError: there is no node (exit 69), or it refuses.
    """
    process = await asyncio.create_subprocess_exec(
        program, "bridge", *([name] if name is not None else []), *options,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        limit=LINE_BYTES_MAX + 2,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    bridge = Bridge(process.stdout, process.stdin)
    bridge._process = process
    is_greeted = False
    try:
        await asyncio.wait_for(asyncio.shield(bridge._ready), timeout)
        is_greeted = True
    except (BridgeClosed, asyncio.TimeoutError):
        process.stdin.close()
        saying = asyncio.get_running_loop().create_task(process.stderr.read())
        code = await _process_end(process, CLOSE_SECONDS if bridge._closed.is_set() else 0)
        said = (await saying).decode("utf-8", "replace").strip()
        raise BridgeError(said or "no answer from the node", code or 75) from None
    finally:
        if not is_greeted:  # also when this was cancelled
            bridge._ready.cancel()
            await _process_end(process, 0)
    return bridge


async def supervised(timeout: float = 30.0) -> Bridge:
    """The bridge of a program that a node has started (bridge NAME { command = ... } of its configuration).

    From here on print() writes to the standard error, which goes to the node's log.
    """
    try:
        stream = socket.socket(fileno=os.dup(0))
    except OSError:
        raise BridgeError("standard input is no socket", 69, "a node starts this program: docs/bridge.md") from None
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the end of the bridge is the end of all of the program's ends
    os.close(nothing)
    reader, writer = await asyncio.open_connection(sock=stream, limit=LINE_BYTES_MAX + 2)
    bridge = Bridge(reader, writer)
    try:
        await asyncio.wait_for(asyncio.shield(bridge._ready), timeout)
    except BaseException:
        writer.transport.abort()
        raise
    return bridge
