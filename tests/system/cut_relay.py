#!/usr/bin/env python3
"""cut_relay.py FILE - a relay to the port of this host that FILE holds, asked for each connection.

Prints its own port. A line "cut" on stdin ends all connections and refuses new ones, "mend" takes them again;
each is answered with the line itself.
"""
import socket
import sys
import threading

lock = threading.Lock()
pairs = []
is_cut = False


def pump(source, sink):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def accept(listener, path):
    while True:
        near, _ = listener.accept()
        with lock:
            refused = is_cut
        try:
            if refused:
                near.close()
                continue
            with open(path, encoding="ascii") as file:
                far = socket.create_connection(("127.0.0.1", int(file.read())))
        except (OSError, ValueError):
            near.close()
            continue
        with lock:
            pairs.append((near, far))
        for ends in ((near, far), (far, near)):
            threading.Thread(target=pump, args=ends, daemon=True).start()


def main():
    global is_cut
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, sys.argv[1]), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        with lock:
            is_cut = line.strip() == "cut"
            if is_cut:
                for pair in pairs:
                    for end in pair:
                        try:
                            end.shutdown(socket.SHUT_RDWR)
                        except OSError:
                            pass
                pairs.clear()
        print(line.strip(), flush=True)


main()
