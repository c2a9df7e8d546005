#!/usr/bin/env python3
"""management_client.py - what no well-behaved client sends to the management API.

    management_client.py PORT raw TEXT        send TEXT (escapes as in Python), print all that comes back
    management_client.py PORT slow MS         send a request a byte each 50 ms; print "closed" when it is cut off before MS
    management_client.py PORT crowd N         open N connections at one time, print how many of them the node keeps
    management_client.py PORT hold N TEXT     send TEXT on N connections, print "held", and keep them until it is ended
    management_client.py PORT reopen N        open a stream of events N times, each closed at once; print how many were accepted
    management_client.py PORT events QUERY    print type and delay in ms of each change in a stream of events, until it ends
"""
import datetime
import json
import signal
import socket
import sys
import time


def connect(port, timeout=20):
    return socket.create_connection(("127.0.0.1", port), timeout)


def everything(conn):
    data = b""
    try:
        while True:
            part = conn.recv(65536)
            if not part:
                break
            data += part
    except (ConnectionResetError, BrokenPipeError):
        pass
    return data


def raw(port, text):
    conn = connect(port)
    data = text.encode("latin-1").decode("unicode_escape").encode("latin-1")
    try:
        conn.sendall(data)
    except (ConnectionResetError, BrokenPipeError):
        pass
    sys.stdout.write(everything(conn).decode("latin-1"))


def slow(port, ms):
    conn = connect(port)
    end = time.monotonic() + ms / 1000
    conn.settimeout(0.05)
    request = b"GET /cluster/members HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Filler: " + b"x" * 100000
    for byte in request:
        if time.monotonic() > end:
            break
        try:
            conn.sendall(bytes([byte]))
            if conn.recv(1024) == b"":
                print("closed")
                return
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            print("closed")
            return
    print("open")


def crowd(port, count):
    conns = []
    for _ in range(count):
        try:
            conns.append(connect(port))
        except OSError:
            pass
    still = 0
    deadline = time.monotonic() + 30
    for conn in conns:
        conn.settimeout(max(0.002, min(0.01, deadline - time.monotonic())))
        try:
            still += conn.recv(1) != b""
        except TimeoutError:
            still += 1
        except OSError:
            pass
    print("open", still)
    for conn in conns:
        conn.close()


def hold(port, count, text):
    conns = []
    for _ in range(count):
        conns.append(connect(port))
        conns[-1].sendall(text.encode("latin-1").decode("unicode_escape").encode("latin-1"))
    print("held", flush=True)
    signal.pause()


def reopen(port, count):
    accepted = 0
    for _ in range(count):
        conn = connect(port)
        conn.sendall(b"GET /cluster/domain-events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        accepted += b" 200 " in conn.recv(1024).split(b"\r\n")[0]
        conn.close()
    print("accepted", accepted)


def events(port, query):
    conn = connect(port, None)
    conn.sendall(f"GET /cluster/domain-events{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    for line in conn.makefile("r", encoding="utf-8"):
        now = time.time()
        if line.startswith("data:"):
            event = json.loads(line[5:])
            if "time" in event and not event.get("snapshot"):
                at = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
                print(event["type"], max(0, round((now - at) * 1000)), flush=True)
            elif event["type"] == "Reset":
                print("Reset 0", flush=True)


port = int(sys.argv[1])
if sys.argv[2] == "raw":
    raw(port, sys.argv[3])
elif sys.argv[2] == "slow":
    slow(port, int(sys.argv[3]))
elif sys.argv[2] == "crowd":
    crowd(port, int(sys.argv[3]))
elif sys.argv[2] == "hold":
    hold(port, int(sys.argv[3]), sys.argv[4])
elif sys.argv[2] == "reopen":
    reopen(port, int(sys.argv[3]))
elif sys.argv[2] == "events":
    events(port, sys.argv[3])
else:
    sys.exit("unknown: " + sys.argv[2])
