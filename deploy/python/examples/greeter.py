"""An actor in Python, at /user/python/greeter of the node on this machine.

    troupe dev 1 &
    python3 greeter.py &
    troupe ask /user/python/greeter world          # hello, world

Or the node starts it: bridge python { command = { "python3", "/path/to/greeter.py", "--supervised" } }
"""

import asyncio
import logging
import sys

import troupe


class Greeter(troupe.Actor):
    def __init__(self) -> None:
        self.greeted = 0

    async def receive(self, message: troupe.Message) -> None:
        self.greeted += 1
        await message.reply(f"hello, {message.value!s}")


async def main() -> None:
    bridge = await (troupe.supervised() if "--supervised" in sys.argv else troupe.connect("python"))
    async with bridge:
        path = await bridge.host("greeter", Greeter())
        print(f"{path} of {bridge.ready.node} greets", flush=True)
        await bridge.wait_closed()


if __name__ == "__main__":
    logging.basicConfig()
    try:
        asyncio.run(main())
    except troupe.BridgeError as error:
        raise SystemExit(f"greeter: {error}")
    except KeyboardInterrupt:
        pass
