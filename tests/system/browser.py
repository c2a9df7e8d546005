#!/usr/bin/env python3
"""browser.py - a headless Chromium that obeys lines: one command a line on standard input, one answer a line.

    open URL            load it in the page; answers when it has loaded
    await SECONDS JS    until the expression is true; its value, or "no" and what the page shows
    eval JS             its value as JSON
    key NAME            press and release: Tab, Enter, or a character
    size WIDTH HEIGHT   of the window; scheme light|dark: what the system prefers
    shot FILE           the page as PNG
    errors              what the page has complained of (exceptions, the content security policy), as JSON

An answer is "ok VALUE" or "no REASON". The protocol is that of the developer tools, over the pipe that
--remote-debugging-pipe opens on descriptors 3 and 4: JSON, each message ended by a NUL.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

COMMAND_S = 60
KEYS = {"Tab": (9, "Tab", ""), "Enter": (13, "Enter", "\r"), "Space": (32, " ", " ")}


class Gone(Exception):
    pass


class Browser:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="browser.")
        self.errors, self.loaded, self.number, self.data = [], False, 0, b""
        there, self.out = os.pipe()
        self.into, here = os.pipe()
        high = [os.dup(fd) for fd in (there, here, there, here)]  # so that 3 and 4 are none of them
        program = shutil.which("chromium") or shutil.which("chromium-browser") or sys.exit("no chromium")

        def place():
            os.dup2(high[2], 3)
            os.dup2(high[3], 4)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
             "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self.directory, "about:blank"],
            preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.directory})
        for fd in (there, here, *high):
            os.close(fd)
        self.session = None
        target = next(t for t in self.targets() if t["type"] == "page")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)

    def targets(self):
        end = time.monotonic() + COMMAND_S
        while time.monotonic() < end:
            found = self.ask("Target.getTargets")["targetInfos"]
            if any(t["type"] == "page" for t in found):
                return found
            select.select([], [], [], 0.05)
        raise Gone("no page")

    def message(self, seconds):
        """The next message; None: none came."""
        end = time.monotonic() + seconds
        while b"\0" not in self.data:
            ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.into, 1 << 20)
            if not part:
                raise Gone("the browser has ended")
            self.data += part
        text, self.data = self.data.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        method, params = message.get("method", ""), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details.get("text"))
        elif method == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.errors.append(params["entry"]["text"])

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + COMMAND_S
        while time.monotonic() < end:
            answer = self.message(end - time.monotonic())
            if answer is None:
                break
            if answer.get("id") != self.number:
                self.note(answer)
            elif "error" in answer:
                raise ValueError(answer["error"]["message"])
            else:
                return answer["result"]
        raise Gone("no answer to " + method)

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise ValueError(result["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return result["result"].get("value")

    def open(self, url):
        self.ask("Page.navigate", url="about:blank")  # an address that differs behind its '#' alone loads nothing
        self.value("1")
        self.loaded = False
        self.ask("Page.navigate", url=url)
        end = time.monotonic() + COMMAND_S
        while not self.loaded:
            message = self.message(end - time.monotonic())
            if message is None:
                raise Gone("the page does not load")
            self.note(message)
        return ""

    def wait(self, seconds, expression):
        end = time.monotonic() + float(seconds)
        while True:
            value = self.value(expression)
            if value:
                return json.dumps(value)
            if time.monotonic() > end:
                raise ValueError("not so: " + expression + ": " + self.value("document.body.innerText").replace("\n", "|")[:3000])
            message = self.message(0.1)
            if message is not None:
                self.note(message)

    def key(self, name):
        code, key, text = KEYS.get(name, (ord(name[0].upper()), name, name))
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, nativeVirtualKeyCode=code,
                     text=text if kind == "keyDown" else "")
        return ""

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=int(width), height=int(height), deviceScaleFactor=1, mobile=False)
        return ""

    def scheme(self, name):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        return ""

    def shot(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
        return ""

    def obey(self, line):
        word, _, rest = line.partition(" ")
        if word == "await":
            return self.wait(*rest.split(" ", 1))
        if word == "eval":
            return json.dumps(self.value(rest))
        if word == "errors":
            return json.dumps(self.errors)
        return {"open": self.open, "key": self.key, "scheme": self.scheme, "shot": self.shot,
                "size": lambda text: self.size(*text.split())}[word](rest)

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def main():
    browser = Browser()
    try:
        print("ok", flush=True)
        for line in sys.stdin:
            try:
                print("ok", browser.obey(line.rstrip("\n")), flush=True)
            except ValueError as why:
                print("no", str(why).replace("\n", " "), flush=True)
    finally:
        browser.end()


if __name__ == "__main__":
    main()
