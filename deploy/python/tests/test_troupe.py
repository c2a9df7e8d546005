"""Tests of the package against a real node: tests/system/python.sh starts it and names its socket."""

from __future__ import annotations

import asyncio
import os
import tempfile
import unittest
import unittest.mock
from typing import Any, Dict, List

import troupe
from troupe import bridge as inner
from troupe.protocol import LINE_BYTES_MAX, line_of, payload_keys, payload_read

PROGRAM = os.environ["TEST_TROUPE"]
OPTIONS = ("--socket", os.environ["TEST_SOCKET"])


async def open_bridge(name: str) -> troupe.Bridge:
    """The name is free a moment after the bridge before it has ended."""
    deadline = asyncio.get_running_loop().time() + 60
    while True:
        try:
            return await troupe.connect(name, program=PROGRAM, options=OPTIONS)
        except troupe.BridgeError as refused:
            if refused.exit != 1 or asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.02)


class Echo(troupe.Actor):
    async def receive(self, message: troupe.Message) -> None:
        await message.reply(message.payload)


class Protocol(unittest.TestCase):
    def test_payloads_come_back_as_they_went(self) -> None:
        payloads: List[troupe.Payload] = [
            troupe.Json({"a": [1, 2.5, None, "x"]}),
            troupe.Text("h\u00e4llo\n"),
            troupe.Bytes(bytes(range(256))),
            troupe.Typed("shop.order", {"count": 3}),
        ]
        for payload in payloads:
            keys: Dict[str, Any] = payload_keys(payload)
            self.assertEqual(payload_read(keys), payload)

    def test_plain_values_have_their_type(self) -> None:
        self.assertEqual(payload_keys("x"), {"text": "x"})
        self.assertEqual(payload_keys(b"\0"), {"base64": "AA=="})
        self.assertEqual(payload_keys(None), {"json": None})

    def test_a_line_has_a_limit(self) -> None:
        empty = len(line_of({"op": "tell", "text": ""})) - 1
        self.assertEqual(len(line_of({"op": "tell", "text": "x" * (LINE_BYTES_MAX - empty)})), LINE_BYTES_MAX + 1)
        with self.assertRaises(troupe.BridgeError) as caught:
            line_of({"op": "tell", "text": "x" * (LINE_BYTES_MAX - empty + 1)})
        self.assertEqual(caught.exception.exit, 65)


class Actors(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.bridge = await open_bridge("test")

    async def asyncTearDown(self) -> None:
        await self.bridge.close()

    async def test_the_node_greets(self) -> None:
        self.assertEqual(self.bridge.ready.protocol, 1)
        self.assertEqual(self.bridge.ready.path, "/user/test")
        await self.bridge.ping()

    async def test_an_actor_answers_with_each_type(self) -> None:
        path = await self.bridge.host("echo", Echo())
        self.assertEqual(path, "/user/test/echo")
        payloads: List[troupe.Payload] = [troupe.Json([1, {"b": None}]), troupe.Text("x"), troupe.Bytes(b"\0\1")]
        for payload in payloads:
            self.assertEqual(await self.bridge.ask(path, payload), payload)

    async def test_messages_come_in_their_order_with_their_sender(self) -> None:
        got: "asyncio.Queue[troupe.Message]" = asyncio.Queue()
        await self.bridge.host("taker", got.put)
        await self.bridge.host("echo", Echo())
        for number in range(200):
            await self.bridge.tell("/user/test/taker", number, actor="echo")
        for number in range(200):
            message = await asyncio.wait_for(got.get(), 30)
            self.assertEqual(message.value, number)
            self.assertEqual(message.sender, "/user/test/echo")

    async def test_refusals_are_errors(self) -> None:
        with self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.ask("/user/nobody", 1)
        self.assertEqual(caught.exception.exit, 68)
        with self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.host("a/b", Echo())
        self.assertEqual(caught.exception.exit, 64)
        with self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.tell("/user/x", troupe.Typed("no.such", {}))
        self.assertEqual(caught.exception.exit, 65)
        await self.bridge.host("b", Echo())
        with self.assertRaises(troupe.BridgeError):
            await self.bridge.host("b", Echo())

    async def test_a_failing_handler_fails_its_ask_and_goes_on(self) -> None:
        async def handler(message: troupe.Message) -> None:
            if message.value == "bad":
                raise ValueError("no good")
            await message.reply("good")

        await self.bridge.host("picky", handler)
        with self.assertLogs("troupe", "ERROR"), self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.ask("/user/test/picky", "bad")
        self.assertIn("ValueError: no good", caught.exception.error)
        self.assertEqual(await self.bridge.ask("/user/test/picky", "fine"), troupe.Text("good"))

    async def test_a_failure_without_a_text_fails_its_ask(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        async def handler(message: troupe.Message) -> None:
            if message.value == "mute":
                raise Mute()
            if message.value == "name":
                raise OSError("bad file name \udcff")
            await message.reply("good")

        await self.bridge.host("odd", handler)
        with self.assertLogs("troupe", "ERROR"), self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.ask("/user/test/odd", "name")
        self.assertIn("bad file name \\udcff", caught.exception.error)
        with self.assertLogs("troupe", "ERROR"):
            await self.bridge.tell("/user/test/odd", "mute")
            self.assertEqual(await self.bridge.ask("/user/test/odd", "fine"), troupe.Text("good"))
        with self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.tell("/user/test/odd", "\udcff")
        self.assertEqual(caught.exception.exit, 65)

    async def test_one_that_fails_as_it_starts_harms_no_other(self) -> None:
        class Broken(troupe.Actor):
            async def started(self) -> None:
                raise RuntimeError("no database")

        with self.assertLogs("troupe"):
            await self.bridge.host("broken", Broken())
            await self.bridge.host("echo", Echo())
            other = await open_bridge("sender")
            for start in range(0, inner.QUEUE_MESSAGES * 2, 100):
                await asyncio.gather(*(other.tell("/user/test/broken", n) for n in range(start, start + 100)))
            with self.assertRaises(troupe.BridgeError) as caught:
                await other.ask("/user/test/broken", 1, 60)
            self.assertEqual(caught.exception.exit, 1)
            self.assertEqual(await other.ask("/user/test/echo", 2, 60), troupe.Json(2))
            await other.close()

    async def test_a_refused_watch_leaves_nothing(self) -> None:
        for number in range(3):
            with self.assertRaises(troupe.BridgeError):
                await self.bridge.watch(f"/user/nobody{number}")
        self.assertEqual(self.bridge._watches, {})

    async def test_an_ask_that_nobody_answers_times_out(self) -> None:
        async def handler(message: troupe.Message) -> None:
            pass

        await self.bridge.host("silent", handler)
        with self.assertRaises(troupe.BridgeError) as caught:
            await self.bridge.ask("/user/test/silent", 1, 0.2)
        self.assertEqual(caught.exception.exit, 75)

    async def test_a_handler_may_ask(self) -> None:
        async def handler(message: troupe.Message) -> None:
            answer = await message.bridge.ask("/user/test/echo", message.payload, actor=message.actor)
            await message.reply(answer)

        await self.bridge.host("echo", Echo())
        await self.bridge.host("middle", handler)
        answers = await asyncio.gather(*(self.bridge.ask("/user/test/middle", n) for n in range(50)))
        self.assertEqual(answers, [troupe.Json(n) for n in range(50)])

    async def test_the_end_of_an_actor_is_seen(self) -> None:
        await self.bridge.host("mortal", Echo())
        await self.bridge.host("watcher", Echo())
        watch = await self.bridge.watch("/user/test/mortal", actor="watcher")
        await self.bridge.stop("mortal")
        self.assertFalse(await asyncio.wait_for(watch.terminated(), 30))
        with self.assertRaises(troupe.BridgeError):
            await self.bridge.watch("/user/test/mortal")

    async def test_a_publication_reaches_subscribers(self) -> None:
        got: "asyncio.Queue[troupe.Message]" = asyncio.Queue()
        await self.bridge.host("reader", got.put)
        await self.bridge.subscribe("reader", "weather")
        delivery = await self.bridge.publish("weather", {"sky": "blue"})
        self.assertEqual(delivery, troupe.Delivery(1, 1, 0))
        self.assertEqual((await asyncio.wait_for(got.get(), 30)).value, {"sky": "blue"})
        await self.bridge.unsubscribe("reader", "weather")

    async def test_the_members_are_told(self) -> None:
        async for event in self.bridge.events(["MemberUp"]):
            self.assertEqual(event.type, "MemberUp")
            self.assertTrue(event.snapshot)
            assert event.member is not None
            self.assertEqual(event.member["node"], self.bridge.ready.node)
            break

    async def test_a_trace_goes_on(self) -> None:
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        got: "asyncio.Queue[troupe.Message]" = asyncio.Queue()
        await self.bridge.host("last", got.put)

        async def handler(message: troupe.Message) -> None:
            await message.bridge.tell("/user/test/last", 1)

        await self.bridge.host("first", handler)
        await self.bridge.request("tell", to="/user/test/first", json=1, traceparent=parent)
        message = await asyncio.wait_for(got.get(), 30)
        assert message.traceparent is not None
        self.assertEqual(message.traceparent[3:35], parent[3:35])
        self.assertNotEqual(message.traceparent[36:52], parent[36:52])

    async def test_more_messages_than_the_queue_has_are_kept(self) -> None:
        count = inner.QUEUE_MESSAGES * 2
        go_on, seen = asyncio.Event(), 0

        async def handler(message: troupe.Message) -> None:
            nonlocal seen
            await go_on.wait()
            seen += 1

        await self.bridge.host("slow", handler)
        other = await open_bridge("sender")
        await asyncio.gather(*(other.tell("/user/test/slow", n) for n in range(count)))
        self.assertLessEqual(self.bridge._hosted["slow"].queue.qsize(), inner.QUEUE_MESSAGES)
        go_on.set()
        deadline = asyncio.get_running_loop().time() + 60
        while seen < count and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
        await other.close()
        self.assertEqual(seen, count)


class Silent(unittest.IsolatedAsyncioTestCase):
    """With a tool that does not end: what a node that hangs makes of it."""

    async def asyncSetUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.program = os.path.join(self.directory.name, "tool")
        self.pid = os.path.join(self.directory.name, "pid")

    async def asyncTearDown(self) -> None:
        self.directory.cleanup()

    def tool(self, first: str) -> None:
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho $$ >{self.pid}.new; mv {self.pid}.new {self.pid}\n{first}\nexec tail -f /dev/null\n")
        os.chmod(self.program, 0o755)

    async def started(self) -> int:
        deadline = asyncio.get_running_loop().time() + 60
        while not os.path.exists(self.pid) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
        with open(self.pid, encoding="utf-8") as file:
            return int(file.read())

    def assert_gone(self, pid: int) -> None:
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    async def test_close_has_a_deadline(self) -> None:
        self.tool("""echo '{"event":"ready","protocol":1,"version":"0","node":"n","path":"/user/x"}'""")
        bridge = await troupe.connect(program=self.program, timeout=60)
        pid = await self.started()
        await asyncio.wait_for(bridge.close(0.1), 60)
        self.assert_gone(pid)

    async def test_connect_has_a_deadline(self) -> None:
        self.tool("")
        with self.assertRaises(troupe.BridgeError) as caught:
            connecting = asyncio.create_task(troupe.connect(program=self.program, timeout=2))
            pid = await self.started()
            await asyncio.wait_for(connecting, 60)
        self.assertEqual(caught.exception.exit, 75)
        self.assert_gone(pid)

    async def test_a_cancelled_connect_leaves_no_process(self) -> None:
        begin, processes = asyncio.create_subprocess_exec, []

        async def noted(*args: Any, **keys: Any) -> asyncio.subprocess.Process:
            processes.append(await begin(*args, **keys))  # kept: one that is not referred to is killed by asyncio
            return processes[-1]

        self.tool("")
        with unittest.mock.patch.object(asyncio, "create_subprocess_exec", noted):
            connecting = asyncio.create_task(troupe.connect(program=self.program, timeout=60))
            pid = await self.started()
            deadline = asyncio.get_running_loop().time() + 60
            while not processes and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.02)
            connecting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await connecting
        self.assertIsNotNone(processes[0].returncode)
        self.assert_gone(pid)

    async def test_a_line_that_is_not_understood_ends_the_bridge(self) -> None:
        self.tool("""echo '{"event":"ready","protocol":1,"version":"0","node":"n","path":"/user/x"}'
read -r request
echo '{"event":"message"}'""")
        bridge = await troupe.connect(program=self.program, timeout=60)
        with self.assertRaises(troupe.BridgeClosed):
            await asyncio.wait_for(bridge.ping(), 60)
        await asyncio.wait_for(bridge.close(0.1), 60)


class Ends(unittest.IsolatedAsyncioTestCase):
    async def test_a_name_is_taken_once(self) -> None:
        async with await open_bridge("twice"):
            with self.assertRaises(troupe.BridgeError) as caught:
                await troupe.connect("twice", program=PROGRAM, options=OPTIONS)
            self.assertEqual(caught.exception.exit, 1)

    async def test_without_a_node_it_is_69(self) -> None:
        with self.assertRaises(troupe.BridgeError) as caught:
            await troupe.connect(program=PROGRAM, options=("--socket", "/nowhere/node.sock"))
        self.assertEqual(caught.exception.exit, 69)

    async def test_actors_stop_with_the_bridge(self) -> None:
        stopped: List[str] = []

        class Noted(troupe.Actor):
            async def receive(self, message: troupe.Message) -> None:
                pass

            async def stopped(self) -> None:
                stopped.append(self.name)

        first, second = await open_bridge("first"), await open_bridge("second")
        await first.host("a", Noted())
        watch = await second.watch("/user/first/a")
        await first.close()
        self.assertFalse(await asyncio.wait_for(watch.terminated(), 30))
        with self.assertRaises(troupe.BridgeClosed):
            await first.ping()
        await second.close()
        self.assertEqual(stopped, ["a"])


if __name__ == "__main__":
    unittest.main()
