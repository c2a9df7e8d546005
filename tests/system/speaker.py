#!/usr/bin/env python3
"""speaker.py - a second implementation of docs/wire.md, written from that page alone: a member of a cluster in Python.

    speaker.py SYSTEM PORT SEED-PORT [COOKIE-FILE]

With a file it shows its first line as a cookie, and asks for it. It joins through the seed on 127.0.0.1, is welcomed, answers heartbeats, gossips, and has an actor /user/echo, which sends
back what it is told. At SIGTERM it leaves. It prints a line for each of these, and says on stderr what it does not understand.
"""
import hmac
import os
import random
import selectors
import signal
import socket
import struct
import sys
import time

MASK = (1 << 64) - 1
HOST = "127.0.0.1"
INIT_JOIN, ACK, NACK, JOIN, WELCOME, DIGEST, VERSION, ENVELOPE, CONFIRMED, GONE, STRANGER = range(1, 12)
JOINING, UP, LEAVING, EXITING, DOWN = range(1, 6)
STATUS = [None, "Joining", "Up", "Leaving", "Exiting", "Down"]
REQUEST, RESPONSE, REFUSAL, LANE_OPEN, USER, SELECT, MANIFEST, SYSTEM, SYS_ACK = range(1, 10)
CONTROL, PING, PONG, GOODBYE, GOODBYE_ACK = 11, 12, 13, 14, 15


# ---- XXH64

P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161,
                      9650029242287828579, 2870177450012600261)


def rotl(x, r):
    return (x << r | x >> 64 - r) & MASK


def xxh_round(acc, lane):
    return rotl(acc + lane * P2 & MASK, 31) * P1 & MASK


def xxh64(data, seed=0):
    at, end = 0, len(data)
    if end >= 32:
        v = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while at + 32 <= end:
            for i, lane in enumerate(struct.unpack_from("<4Q", data, at)):
                v[i] = xxh_round(v[i], lane)
            at += 32
        h = (rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18)) & MASK
        for x in v:
            h = ((h ^ xxh_round(0, x)) * P1 + P4) & MASK
    else:
        h = (seed + P5) & MASK
    h = (h + end) & MASK
    while at + 8 <= end:
        h = (rotl(h ^ xxh_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= end:
        h = (rotl(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


# ---- msgpack: what the page uses of it

def pack(x):
    if isinstance(x, dict):
        assert len(x) < 16
        return bytes([0x80 | len(x)]) + b"".join(pack(k) + pack(v) for k, v in x.items())
    if isinstance(x, list):
        head = bytes([0x90 | len(x)]) if len(x) < 16 else b"\xdc" + struct.pack(">H", len(x))
        return head + b"".join(map(pack, x))
    if isinstance(x, str):
        raw = x.encode()
        return (bytes([0xa0 | len(raw)]) if len(raw) < 32 else b"\xd9" + bytes([len(raw)])) + raw
    if isinstance(x, bytes):
        return b"\xc6" + struct.pack(">I", len(x)) + x
    assert isinstance(x, int) and x >= 0
    return bytes([x]) if x < 128 else b"\xcf" + struct.pack(">Q", x)


def unpack(data):
    def many(at, count):
        out = []
        for _ in range(count):
            x, at = one(at)
            out.append(x)
        return out, at

    def pairs(at, count):
        flat, at = many(at, 2 * count)
        return dict(zip(flat[::2], flat[1::2])), at

    def one(at):
        t = data[at]
        at += 1
        if t < 0x80:
            return t, at
        if t < 0x90:
            return pairs(at, t & 15)
        if t < 0xa0:
            return many(at, t & 15)
        if t < 0xc0:
            return data[at:at + (t & 31)].decode(), at + (t & 31)
        if t in (0xc0, 0xc2, 0xc3):
            return {0xc0: None, 0xc2: False, 0xc3: True}[t], at
        if t in (0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb):
            width = 1 << (t - 0xc4 if t < 0xd0 else t - 0xd9)
            size = int.from_bytes(data[at:at + width], "big")
            raw = data[at + width:at + width + size]
            return (raw if t < 0xd0 else raw.decode()), at + width + size
        if t in (0xca, 0xcb):
            width = 4 if t == 0xca else 8
            return struct.unpack_from(">f" if width == 4 else ">d", data, at)[0], at + width
        if 0xcc <= t <= 0xd3:
            width = 1 << (t - 0xcc & 3)
            return int.from_bytes(data[at:at + width], "big", signed=t >= 0xd0), at + width
        if t in (0xdc, 0xdd, 0xde, 0xdf):
            width = 2 if t in (0xdc, 0xde) else 4
            count = int.from_bytes(data[at:at + width], "big")
            return (many if t < 0xde else pairs)(at + width, count)
        if t >= 0xe0:
            return t - 256, at
        raise ValueError("msgpack type %#x" % t)

    return one(0)[0]


# ---- addresses, types, views

def text_of(port):
    return "troupe.tcp://%s@%s:%d" % (system, HOST, port)


def key_of(protocol, name, host, port, uid):
    h = xxh64(protocol.encode(), port)
    h = xxh64(name.encode(), h)
    h = xxh64(host.encode(), h)
    return xxh64(struct.pack("<Q", h), uid)


def type_id(name):
    return xxh64(name.encode())


TYPES = {type_id(n): n for n in ("troupe.string", "troupe.json", "troupe.bytes", "troupe.i64", "troupe.identify",
                                 "troupe.actor-identity", "troupe.status-failure")}


class View:
    """Members by key, what observers say, the clock, tombstones."""

    def __init__(self):
        self.members, self.rows, self.clock, self.tombstones = {}, {}, {}, {}

    @staticmethod
    def read(raw):
        g = unpack(raw)
        view = View()
        keys = []
        for m in g["m"]:
            host, port, uid, status, up, version, roles = m[:7]
            key = key_of(g["p"], g["s"], host, port, uid)
            keys.append(key)
            view.members[key] = dict(host=host, port=port, uid=uid, status=status, up=up, version=version,
                                     roles=[g["r"][r] for r in roles], weak=m[7] if len(m) > 7 else 0)
        for observer, version, subjects in g["o"]:
            view.rows[keys[observer]] = (version, sorted(keys[s] for s in subjects))
        view.clock = {keys[number]: counter for number, counter in g["c"]}
        view.tombstones = {key: (wall, status) for key, wall, status in g["t"]}
        return view

    def order(self):
        return sorted(self.members, key=lambda k: (self.members[k]["host"].encode(), self.members[k]["port"],
                                                   self.members[k]["uid"]))

    def write(self):
        keys = self.order()
        number = {key: i for i, key in enumerate(keys)}
        roles = []
        rows = []
        for key in keys:
            m = self.members[key]
            roles += [r for r in m["roles"] if r not in roles]
            rows.append([m["host"], m["port"], m["uid"], m["status"], m["up"], m["version"],
                         [roles.index(r) for r in m["roles"]]] + ([1] if m["weak"] else []))
        return pack({"v": 1, "p": "troupe.tcp", "s": system, "r": roles, "m": rows,
                     "o": [[number[o], v, [number[s] for s in subjects]]
                           for o, (v, subjects) in sorted(self.rows.items())],
                     "c": [[number[k], c] for k, c in sorted(self.clock.items())],
                     "t": [[k, w, s] for k, (w, s) in sorted(self.tombstones.items())]})

    def digest(self):
        h = len(self.members)
        for key in self.order():
            m = self.members[key]
            h = xxh64(struct.pack("<QHHI", key, m["status"], m["weak"], m["up"]), h)
        rows = [struct.pack("<QQ", o, s) for o, (_, subjects) in sorted(self.rows.items()) for s in subjects]
        h = xxh64(b"".join(rows), h)
        h = xxh64(b"".join(struct.pack("<QQ", o, v) for o, (v, _) in sorted(self.rows.items())), h)
        return xxh64(b"".join(struct.pack("<QQ", k, c) for k, c in sorted(self.clock.items())), h)

    def merge(self, other):
        out = View()
        out.tombstones = {**self.tombstones, **other.tombstones}
        for side in (self, other):
            for key, m in side.members.items():
                if key in out.tombstones:
                    continue
                mine = out.members.setdefault(key, dict(m))
                if (m["status"], m["weak"]) > (mine["status"], mine["weak"]):
                    mine["status"], mine["weak"] = m["status"], m["weak"]
                mine["up"] = min((u for u in (mine["up"], m["up"]) if u), default=0)
        for side in (self, other):
            for key, (version, subjects) in side.rows.items():
                if key in out.members and out.rows.get(key, (-1,))[0] < version:
                    out.rows[key] = (version, [s for s in subjects if s in out.members])
            for key, counter in side.clock.items():
                if key in out.members:
                    out.clock[key] = max(counter, out.clock.get(key, 0))
        return out


def is_newer(a, b, view):
    keys = [k for k in set(a) | set(b) if k not in view.tombstones]
    return all(a.get(k, 0) >= b.get(k, 0) for k in keys) and any(a.get(k, 0) > b.get(k, 0) for k in keys)


# ---- the cookie, before the preamble

def keyed(label, *parts):
    return hmac.new(secret, label.encode().ljust(24, b"\0") + b"".join(parts), "sha256").digest()


def mark_and_tag(fresh, dialler, acceptor):
    places = [("%s:%d" % (HOST, port)).encode() for port in (dialler, acceptor)]
    return keyed("troupe cookie nonce", fresh)[:4], keyed("troupe cookie addresses", fresh, b"\0".join(places))[:8]


class Cookie:
    """The four steps: take() gets bytes of the other end and returns what to send; wants is 0 at the end."""

    HELLO = b"TRC\x1a\x01\0\0\0"

    def __init__(self, dialler_to=None):
        self.dialled = dialler_to is not None
        self.wants, self.is_shown = 40, False
        self.own, self.theirs = os.urandom(32), b""
        if self.dialled:
            mark, tag = mark_and_tag(self.own[:8], node.port, dialler_to)
            self.own = self.own[:8] + 2 * (mark + tag)

    def proof(self, end):
        nonces = (self.own, self.theirs) if self.dialled else (self.theirs, self.own)
        return keyed("troupe cookie " + end, *nonces, bytes(32))

    def take(self, data):
        if not self.theirs:
            if data[:8] != self.HELLO:
                raise ValueError("shows no cookie")
            self.theirs = data[8:]
            self.wants = 40 if self.dialled else 64
            return 2 * self.proof("dialler") if self.dialled else self.HELLO + self.own
        self.wants = 0
        if self.dialled:
            self.is_shown = data[0] == 1 and hmac.compare_digest(data[8:], self.proof("acceptor"))
            return b""
        mine = self.proof("dialler")
        self.is_shown = hmac.compare_digest(data[:32], mine) or hmac.compare_digest(data[32:], mine)
        return struct.pack("<Q", self.is_shown) + (self.proof("acceptor") if self.is_shown else bytes(32))

    def is_meant_for(self, dialler):
        """An acceptor, when it knows who has dialled: was it made for these two addresses?"""
        mark, tag = mark_and_tag(self.theirs[:8], dialler, node.port)
        slots = [self.theirs[at:at + 12] for at in (8, 20)]
        return next((slot[4:] == tag for slot in slots if slot[:4] == mark), True)


# ---- connections

class Connection:
    def __init__(self, sock, lane=None, port=None):
        self.sock, self.lane, self.port, self.uid = sock, lane, port, 0
        self.dialled = lane is not None
        self.cookie = Cookie(port if self.dialled else None) if secret else None
        self.behind = b""  # what goes out when the cookie has been shown
        self.is_open = False
        self.opened_lane = False
        self.inbox, self.outbox = b"", b""
        self.preamble_read = False
        sock.setblocking(False)
        node.selector.register(sock, selectors.EVENT_READ, self)
        if self.cookie and self.dialled:
            self.outbox = Cookie.HELLO + self.cookie.own

    def put(self, data):
        if self.cookie and self.cookie.wants:
            self.behind += data
        else:
            self.outbox += data

    def preamble(self):
        self.put(b"TRP\x1a" + struct.pack("<BBHQ", 1, self.lane, 0, node.uid))

    def frame(self, kind, body=b"", flags=0, extra=0):
        self.put(struct.pack("<IBBH", len(body), kind, flags, extra) + body)
        self.flush()

    def message(self, kind, body=b"", flags=0, extra=0):
        """After LANE_OPEN, which says who is later: the epochs of a lane rise."""
        if not self.opened_lane:
            self.opened_lane = True
            node.epoch += 1
            self.frame(LANE_OPEN, struct.pack("<I", node.epoch))
        self.frame(kind, body, flags, extra)

    def flush(self):
        try:
            while self.outbox:
                self.outbox = self.outbox[self.sock.send(self.outbox):]
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def close(self):
        if self in node.connections:
            node.connections.remove(self)
            node.selector.unregister(self.sock)
            self.sock.close()

    def read(self):
        try:
            data = self.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.inbox += data
        if self.cookie and self.cookie.wants and not self.show_cookie():
            return
        if not self.preamble_read:
            if len(self.inbox) < 16:
                return
            magic, version, lane, _, self.uid = struct.unpack("<4sBBHQ", self.inbox[:16])
            if magic != b"TRP\x1a" or version != 1:
                print("it wants a cookie" if magic == b"TRC\x1a" else "no preamble", file=sys.stderr)
                self.close()
                return
            self.inbox, self.preamble_read = self.inbox[16:], True
            if not self.dialled:
                self.lane = lane
                self.preamble()
                self.flush()
            if lane != 0:
                self.is_open = True
                self.port = node.ports.get(self.uid)
                if self.cookie and not self.cookie.is_meant_for(self.port):
                    self.close()
                    return
        while len(self.inbox) >= 8:
            size, kind, flags, extra = struct.unpack_from("<IBBH", self.inbox)
            if len(self.inbox) < 8 + size:
                return
            body, self.inbox = self.inbox[8:8 + size], self.inbox[8 + size:]
            node.take(self, kind, flags, extra, body)


    def show_cookie(self):
        """The steps that inbox has come for. False: it goes on later, or never."""
        while self.cookie.wants and len(self.inbox) >= self.cookie.wants:
            data, self.inbox = self.inbox[:self.cookie.wants], self.inbox[self.cookie.wants:]
            try:
                self.outbox += self.cookie.take(data)
            except ValueError as error:
                print("%s: %s" % (self.port, error), file=sys.stderr)
                self.close()
                return False
        if not self.cookie.wants:
            self.outbox, self.behind = self.outbox + self.behind, b""
        self.flush()
        if not self.cookie.wants and not self.cookie.is_shown:
            print("another cookie", file=sys.stderr)
            self.close()
        return self.cookie.is_shown


# ---- the node

class Node:
    def __init__(self, port, seed):
        self.port, self.seed = port, seed
        self.uid = random.getrandbits(63) | 1
        self.key = key_of("troupe.tcp", system, HOST, port, self.uid)
        self.selector = selectors.DefaultSelector()
        self.connections = []
        self.ports = {}  # of uids that a handshake has proved
        self.view, self.seen = None, set()
        self.epoch = int(time.time())
        self.leaving = self.ended = False
        self.beats = 0
        self.said = set()
        self.confirmed = set()
        self.listener = socket.create_server((HOST, port))
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def say(self, text):
        if text not in self.said:
            self.said.add(text)
            print(text, flush=True)

    def dial(self, port):
        try:
            sock = socket.create_connection((HOST, port), 5)
        except OSError as error:
            print("%s: %s" % (text_of(port), error), file=sys.stderr)
            return
        connection = Connection(sock, 0, port)
        self.connections.append(connection)
        connection.preamble()
        connection.frame(REQUEST, self.handshake(port))

    def handshake(self, port, uid=0):
        return pack({"from": text_of(self.port), "uid": str(self.uid), "to": text_of(port), "to-uid": str(uid),
                     "frame-max": 262144, "reason": ""})

    def link(self, uid, lane):
        return next((c for c in self.connections if c.is_open and c.uid == uid and
                     (c.lane == 0) == (lane == 0)), None)

    def take(self, connection, kind, flags, extra, body):
        if kind in (REQUEST, RESPONSE):
            said = unpack(body)
            connection.port = int(said["from"].rsplit(":", 1)[1])
            if kind == REQUEST and connection.cookie and not connection.cookie.is_meant_for(connection.port):
                connection.close()
                return
            self.ports[connection.uid] = connection.port
            connection.is_open = True
            if kind == REQUEST:
                connection.frame(RESPONSE, self.handshake(connection.port, connection.uid))
            elif self.view is None:
                self.ask_to_join()
        elif kind == REFUSAL:
            print("refused: %s" % unpack(body).get("reason"), file=sys.stderr)
        elif kind == PING:
            connection.frame(PONG, body)
        elif kind == SYSTEM:  # watches: taken, and no actor here ends before the node does
            connection.frame(SYS_ACK, body[:8])
        elif kind == CONTROL:
            self.control(connection, extra, body)
        elif kind in (USER, SELECT):
            self.message(connection, kind, flags, extra, body)
        elif kind == GOODBYE:
            connection.frame(GOODBYE_ACK, flags=flags)
        elif kind not in (LANE_OPEN, MANIFEST, PONG, GOODBYE_ACK, SYS_ACK):
            print("frame of kind %d" % kind, file=sys.stderr)

    # ---- messages

    def message(self, connection, kind, flags, serializer, body):
        if flags & 4:
            return  # a third node: this program talks to none
        if kind == USER:
            slot, generation, from_slot, from_generation, type_ = struct.unpack_from("<IIIIQ", body)
            path, payload = None, body[24:]
        else:
            from_slot, from_generation, type_, length = struct.unpack_from("<IIQH", body)
            path, payload = body[18:18 + length].decode(), body[18 + length:]
            slot, generation = (1, 1) if path == "/user/echo" else (0, 0)
        name = TYPES.get(type_)
        back = (from_slot, from_generation) if flags & 3 == 1 else None
        if name == "troupe.identify":
            here = (slot, generation) == (1, 1)
            answer = payload[:8] + struct.pack("<BII", 1 if here else 0, slot, generation)
            self.tell(connection, back, "troupe.actor-identity", 1, answer)
        elif (slot, generation) == (1, 1) and name:
            self.say("was told %s" % name)
            self.tell(connection, back, name, serializer, payload)

    def tell(self, connection, to, name, serializer, payload):
        link = self.link(connection.uid, 1)
        if to is None or link is None:
            return
        link.message(MANIFEST, struct.pack("<Q", type_id(name)) + name.encode())
        link.message(USER, struct.pack("<IIIIQ", to[0], to[1], 1, 1, type_id(name)) + payload, 1, serializer)

    # ---- the cluster

    def control(self, connection, channel, body):
        if channel == 2 and body[0] == 1:
            connection.message(CONTROL, b"\x02" + body[1:9], 0, 2)
            self.beats += 1
            if self.beats == 3:
                self.say("beats")
        elif channel == 1:
            frame = unpack(body)
            if frame.get("to", 0) in (0, self.uid):
                self.gossip(connection.uid, frame)
                if self.view is not None and not self.ended:
                    self.lead()

    def send(self, uid, frame, to=None):
        link = self.link(uid, 0)
        if link is not None:
            link.message(CONTROL, pack({**frame, "to": uid if to is None else to}), 0, 1)
        elif uid in {m["uid"] for m in self.view.members.values()} if self.view else False:
            port = next(m["port"] for m in self.view.members.values() if m["uid"] == uid)
            if not any(c.port == port and c.lane == 0 for c in self.connections):
                self.dial(port)

    def ask_to_join(self):
        for connection in self.connections:
            if connection.is_open and connection.lane == 0 and connection.port == self.seed:
                self.send(connection.uid, {"k": INIT_JOIN, "ttl": 0, "system": system}, 0)

    def seen_bits(self):
        bits = sum(1 << i for i, key in enumerate(self.view.order()) if key in self.seen)
        return bits.to_bytes((len(self.view.members) + 7) // 8, "little")

    def seen_of(self, frame, view):
        order = view.order()
        if frame.get("seen") == 1:
            return set(order)
        bits = int.from_bytes(frame.get("seen", b""), "little")
        return {key for i, key in enumerate(order) if bits >> i & 1}

    def tell_digest(self, uid, ttl):
        self.send(uid, {"k": DIGEST, "ttl": ttl, "digest": self.view.digest(), "seen": self.seen_bits()})

    def tell_clock(self, uid, ttl):
        clock = [x for pair in sorted(self.view.clock.items()) for x in pair]
        self.send(uid, {"k": VERSION, "ttl": ttl, "digest": self.view.digest(), "clock": clock})

    def tell_view(self, uid, ttl):
        self.send(uid, {"k": ENVELOPE, "ttl": ttl, "g": self.view.write(), "seen": self.seen_bits()})

    def gossip(self, uid, frame):
        kind, ttl = frame["k"], frame.get("ttl", 0)
        if kind == ACK and self.view is None:
            self.send(uid, {"k": JOIN, "ttl": 0, "ticket": frame["ticket"], "roles": ["python"], "app": "1.0.0"})
        elif kind == NACK:
            print("not let in: %s" % frame.get("why"), file=sys.stderr)
        elif kind == GONE:
            self.ended = True
        elif kind == CONFIRMED and self.view is not None:
            self.confirmed |= {k for k, m in self.view.members.items() if m["uid"] == uid}
            self.lead()
        elif kind == WELCOME and self.view is None or kind in (WELCOME, ENVELOPE) and self.view is not None:
            self.hear_view(uid, frame, ttl)
        elif self.view is None or ttl == 0 and kind != DIGEST:
            return
        elif kind in (DIGEST, VERSION) and uid not in {m["uid"] for m in self.view.members.values()}:
            self.send(uid, {"k": STRANGER, "ttl": 0})
        elif kind == DIGEST and frame["digest"] == self.view.digest():
            theirs = self.seen_of(frame, self.view)
            self.seen |= theirs
            if ttl > 0 and not self.seen <= theirs:
                self.tell_digest(uid, ttl - 1)
        elif kind == DIGEST and ttl > 0:
            self.tell_clock(uid, ttl - 1)
        elif kind == VERSION and frame["digest"] != self.view.digest():
            clock = dict(zip(frame["clock"][::2], frame["clock"][1::2]))
            if is_newer(clock, self.view.clock, self.view):
                self.tell_clock(uid, ttl - 1)
            else:
                self.tell_view(uid, ttl - 1)

    def hear_view(self, uid, frame, ttl):
        theirs = View.read(frame["g"])
        if self.key not in theirs.members and self.key not in theirs.tombstones:
            return
        merged = theirs if self.view is None else self.view.merge(theirs)
        ours = self.view is not None and merged.digest() == self.view.digest()
        same = merged.digest() == theirs.digest()
        self.seen = (self.seen if ours else set()) | (self.seen_of(frame, theirs) if same else set()) | {self.key}
        self.view = merged
        if frame["k"] == WELCOME:
            self.say("welcomed")
        if self.key not in self.view.members:
            self.ended = True
            return
        self.say("is %s" % STATUS[self.status()])
        if ttl > 0:
            self.tell_digest(uid, ttl - 1) if same else self.tell_view(uid, ttl - 1)

    def status(self):
        return self.view.members[self.key]["status"]

    def unreachable(self):
        return {s for o, (_, subjects) in self.view.rows.items() for s in subjects
                if self.view.members[o]["status"] < EXITING}

    def leader(self):
        rank = {UP: 0, LEAVING: 0, JOINING: 1, EXITING: 2}
        lost = self.unreachable() - {self.key}
        able = [k for k in self.view.order() if k not in lost and self.view.members[k]["status"] in rank]
        return min(able, key=lambda k: rank[self.view.members[k]["status"]], default=None)

    def has_converged(self):
        return all(k in self.seen and k not in self.unreachable()
                   for k, m in self.view.members.items() if m["status"] < EXITING)

    def next_status(self, key, m):
        if m["status"] == JOINING:
            rival = any(k != key and (o["host"], o["port"]) == (m["host"], m["port"]) and o["status"] != DOWN
                        for k, o in self.view.members.items())
            return JOINING if rival else UP
        if m["status"] == LEAVING:
            return EXITING
        if m["status"] == EXITING and key != self.key:
            return None if key in self.confirmed or key in self.unreachable() else EXITING
        return None if m["status"] == DOWN and key != self.key else m["status"]

    def lead(self):
        while self.leader() == self.key and self.has_converged():
            before = {k: m["status"] for k, m in self.view.members.items()}
            after = {k: self.next_status(k, self.view.members[k]) for k in self.view.order()}
            if before == after:
                return
            up = max(m["up"] for m in self.view.members.values())
            for key, status in after.items():
                m = self.view.members[key]
                if status is None:
                    gone = self.view.members.pop(key)
                    self.view.tombstones[key] = (int(time.time() * 1000), gone["status"])
                    self.send_gone(gone)
                    continue
                if status == UP and before[key] == JOINING:
                    up += 1
                    m["up"], m["weak"] = up, 0
                m["status"] = status
            kept = self.view.members
            self.view.rows = {o: (v, [s for s in subjects if s in kept])
                              for o, (v, subjects) in self.view.rows.items() if o in kept}
            self.view.clock = {k: c for k, c in self.view.clock.items() if k in kept}
            self.changed()
            self.say("leads")

    def send_gone(self, gone):
        link = self.link(gone["uid"], 0)
        if link is not None:
            self.send(gone["uid"], {"k": GONE, "ttl": 0, "code": max(EXITING, gone["status"]),
                                    "by": sorted(self.view.members)})

    def others(self):
        return [m["uid"] for k, m in self.view.members.items() if k != self.key and m["status"] < EXITING]

    def changed(self):
        self.view.clock[self.key] = self.view.clock.get(self.key, 0) + 1
        self.seen = {self.key}
        self.say("is %s" % STATUS[self.status()])
        for uid in self.others():
            self.tell_digest(uid, 4)

    def second(self):
        if self.view is None:
            if not any(c.lane == 0 and c.port == self.seed for c in self.connections):
                self.dial(self.seed)
            else:
                self.ask_to_join()
            return
        if self.leaving and self.status() == UP:
            self.view.members[self.key]["status"] = LEAVING
            self.changed()
        self.lead()
        if self.status() == EXITING and self.leader() is not None:
            self.send(self.view.members[self.leader()]["uid"], {"k": CONFIRMED, "ttl": 0})
        if self.others():
            self.tell_digest(random.choice(self.others()), 4)

    def run(self):
        following = 0.0
        while not self.ended:
            if time.monotonic() >= following:
                following = time.monotonic() + 0.5
                self.second()
            for key, _ in self.selector.select(0.1):
                if key.data is None:
                    sock, _ = self.listener.accept()
                    self.connections.append(Connection(sock))
                else:
                    key.data.read()
            for connection in list(self.connections):
                connection.flush()
        for connection in list(self.connections):
            if connection.is_open and connection.lane == 0:
                connection.message(GOODBYE)
        self.say("left")


system, own_port, seed_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
secret = open(sys.argv[4], "rb").readline().strip() if len(sys.argv) > 4 else b""
node = Node(own_port, seed_port)


def on_signal(*_):
    node.leaving = True
    if node.view is None:
        os._exit(0)


signal.signal(signal.SIGTERM, on_signal)
node.run()
