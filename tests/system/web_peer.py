# web_peer.py - the other end of a WebSocket, by the library websockets.
#     web_peer.py ask URI [CA]          several messages, each of which must come back
#     web_peer.py serve [CERT KEY]      prints its port, gives each message back
import asyncio, ssl, sys
import websockets


async def ask(uri, ca):
    context = ssl.create_default_context(cafile=ca) if ca else None
    async with websockets.connect(uri, ssl=context, max_size=None) as peer:
        for message in ("text", "", "ä€😀", b"\x00\xff", b"x" * 70000, "y" * 1000000):
            await peer.send(message)
            back = await asyncio.wait_for(peer.recv(), 60)
            assert back == message and type(back) is type(message), (message[:20], back[:20])
        await asyncio.wait_for(await peer.ping(), 60)
        await peer.send(["in ", "three ", "parts"])
        assert await asyncio.wait_for(peer.recv(), 60) == "in three parts"
    print("all came back")


async def serve(cert, key):
    context = None
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)

    async def echo(peer, *path):
        async for message in peer:
            await peer.send(message)

    async with websockets.serve(echo, "127.0.0.1", 0, ssl=context) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


arguments = sys.argv[2:] + [None, None]
asyncio.run(ask(arguments[0], arguments[1]) if sys.argv[1] == "ask" else serve(arguments[0], arguments[1]))
