# SPDX-License-Identifier: MIT
#
# browser.py - headless Chromium through the two pipes of the DevTools protocol
import base64
import json
import os
import subprocess
import sys
import time

SECONDS = 60


class Browser:
    def __init__(self, chromium, profile):
        to_read, self.to = os.pipe()
        self.read_end, to_write = os.pipe()
        os.set_inheritable(to_read, True)
        os.set_inheritable(to_write, True)
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 3<&%d 4>&%d' % (to_read, to_write), "sh", chromium,
             "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--user-data-dir=" + profile,
             "--remote-debugging-pipe"],
            close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.n, self.rest, self.events, self.session = 0, b"", [], None

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                sys.exit("browser.py: Chromium has ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def send(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.n:
                if "error" in answer:
                    sys.exit("browser.py: %s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        end = time.time() + SECONDS
        while not any(e.get("method") == method for e in self.events):
            if time.time() > end:
                sys.exit("browser.py: no %s" % method)
            self.events.append(self.message())

    def run(self, script):
        got = self.send("Runtime.evaluate", expression=script, returnByValue=True,
                       awaitPromise=True)
        if "exceptionDetails" in got:
            sys.exit("browser.py: %s: %s" % (script, got["exceptionDetails"]))
        return got["result"].get("value")

    def open(self):
        """A page of its own, which nothing was said about yet."""
        self.session, self.events = None, []
        self.target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=self.target,
                                flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def close(self):
        self.session = None
        self.send("Target.closeTarget", targetId=self.target)

    def end(self):
        self.send("Browser.close")
        self.process.wait(SECONDS)


def screen(b, width, height, phone):
    b.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
          deviceScaleFactor=2 if phone else 1, mobile=phone)


def shoot(b, path):
    size = b.send("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000),
            "scale": 1}
    image = b.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    with open(path, "wb") as f:
        f.write(base64.b64decode(image["data"]))
