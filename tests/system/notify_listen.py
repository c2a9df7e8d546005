"""notify_listen.py - a service manager's ear: prints what is sent to a datagram socket, a line each.

    notify_listen.py PATH|@NAME

A line is the time of its arrival (microseconds of the monotonic clock) and the words, with | between them.
"""
import socket
import sys
import time

ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
ear.bind("\0" + name[1:] if name.startswith("@") else name)
print("listening", flush=True)
while True:
    words = ear.recv(65536).decode()
    print(time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, words.replace("\n", "|"), flush=True)
