# RUN: %PYTHON %s
"""The language server answers, finds a wrong program and offers what fits."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from typing import Any

SECONDS = 60
URI = "test:///wrong.mlir"
WRONG = """commir.mesh @mesh(gpu = 4)
commir.program @wrong on @mesh axes(i = 8)
    inputs(%A: !commir.buffer<[i, k], f32>) outputs() {
}
"""


class Client:
    """Speaks JSON-RPC over a server's standard streams."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            ["mercury-lsp-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.received: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.asked = 0

    def _read(self) -> None:
        stream = self.server.stdout
        assert stream
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass  # other headers
            self.received.put(json.loads(stream.read(length)))

    def notify(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and wait for its result."""
        self.asked += 1
        self._send({"id": self.asked, "method": method, "params": params})
        return self.wait(lambda m: m.get("id") == self.asked)["result"]

    def wait(self, fits: Any) -> dict[str, Any]:
        """Wait for a message; queue.Empty when none comes in time."""
        while True:
            message = self.received.get(timeout=SECONDS)
            if fits(message):
                return message

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.server.stdin
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()


client = Client()
try:
    answer = client.ask("initialize", processId=None, rootUri=None, capabilities={})
    assert answer["serverInfo"]["name"], answer
    assert answer["capabilities"]["completionProvider"], answer
    client.notify("initialized")

    document = {"uri": URI, "languageId": "mlir", "version": 1, "text": WRONG}
    client.notify("textDocument/didOpen", textDocument=document)
    published = client.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics")
    messages = [d["message"] for d in published["params"]["diagnostics"]]
    assert any("must use axes of the program, 'k' is none" in m for m in messages), messages

    # At the start of a line, an operation of any dialect may stand.
    offered = client.ask(
        "textDocument/completion",
        textDocument={"uri": URI},
        position={"line": 3, "character": 0},
    )
    labels = {item["label"] for item in offered["items"]}
    assert {"commir", "transform", "scf"} <= labels, sorted(labels)

    client.ask("shutdown")
    client.notify("exit")
    assert client.server.wait(timeout=SECONDS) == 0
finally:
    client.server.kill()
