"""Headless Chromium, driven through the pipes of its DevTools protocol; no driver is needed."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
"""The browser; None: there is none."""
FAULTS = ("Runtime.exceptionThrown", "Log.entryAdded")
"""Events that no page may cause, nor any message in the console."""
HELPERS = (Path(__file__).parent / "helpers.js").read_text(encoding="utf-8")


@dataclass
class Browser:
    """One tab."""

    to: IO[bytes]
    back: IO[bytes]
    session: str = ""
    faults: list[dict[str, Any]] = field(default_factory=list)
    sent: int = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while (answer := self._read()).get("id") != self.sent:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def wait(self, event: str) -> None:
        """Read until something has happened."""
        while self._read().get("method") != event:
            pass

    def open(self, page: Path) -> None:
        """Load a file, and wait until it is painted."""
        self.call("Page.navigate", url=page.as_uri())
        self.wait("Page.loadEventFired")
        self.run("await new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def run(self, script: str) -> Any:
        """Run the body of an asynchronous function on the page and return what that returns."""
        found = self.call(
            "Runtime.evaluate", expression=f"(async () => {{ {HELPERS} {script} }})()",
            awaitPromise=True, returnByValue=True,
        )  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def _read(self) -> dict[str, Any]:
        parts = bytearray()
        while (byte := self.back.read(1)) != b"\0":
            assert byte, "the browser ended"
            parts += byte
        message = json.loads(parts)
        kind = message.get("method")
        if kind in FAULTS or kind == "Runtime.consoleAPICalled":
            self.faults.append(message["params"])
        return message


@contextmanager
def browser(profile: Path, width: int = 1400, height: int = 1500) -> Iterator[Browser]:
    """A browser with one empty tab; it ends with the block."""
    assert CHROMIUM is not None
    ours, theirs = os.pipe(), os.pipe()
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
        f"--window-size={width},{height}", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    pipes = f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}'
    process = subprocess.Popen(
        ["bash", "-c", pipes, "bash", *command], pass_fds=(ours[0], theirs[1]),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(ours[0])
    os.close(theirs[1])
    try:
        with os.fdopen(ours[1], "wb") as to, os.fdopen(theirs[0], "rb") as back:
            tab = Browser(to, back)
            page = next(
                t for t in tab.call("Target.getTargets")["targetInfos"] if t["type"] == "page"
            )
            attached = tab.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
            tab.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                tab.call(f"{domain}.enable")
            yield tab
    finally:
        process.terminate()
        process.wait(20)
