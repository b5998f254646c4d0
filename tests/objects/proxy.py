"""A loopback HTTP proxy in front of a store that goes wrong by rule: a network, or a store, on a bad day."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import unquote

How = Literal["refuse", "reset", "cut", "shorten", "empty", "whole", "garble", "delay", "lose"]
"""refuse: answer ``status``. reset: end the connection in the middle of the answer's body; cut: likewise, politely.
shorten: half of the body, under a length that says so and without a checksum; empty: likewise none of it; whole: ignore
the range that was asked for; garble: another first byte, under the checksum of the right one.
delay: wait. lose: do as asked, and end the connection instead of answering."""
_HOP = {"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"}


@dataclass
class Rule:
    """What happens to requests of a method whose address matches; ``times`` of them, after the first ``after``."""

    methods: str
    where: str
    how: How
    times: float = float("inf")
    status: int = 503
    code: str = "SlowDown"
    after: int = 0
    seconds: float = 0.0
    seen: int = 0

    def applies(self, method: str, target: str) -> bool:
        """Count a request that matches, and say whether its turn has come to go wrong."""
        if method not in self.methods.split() or not re.search(self.where, target):
            return False
        self.seen += 1
        return self.after < self.seen <= self.after + self.times

    @property
    def hits(self) -> float:
        """How many requests went wrong."""
        return max(0.0, min(self.seen - self.after, self.times))


@dataclass(frozen=True)
class Answer:
    """What the store answered."""

    status: int
    headers: list[tuple[str, str]]
    data: bytes


@dataclass(frozen=True)
class Asked:
    """One request; ``named`` is its address with what only its body says of the object."""

    method: str
    path: str
    named: str
    headers: dict[str, str]
    body: bytes


class Dialect:
    """What differs from store to store; this one is S3's."""

    def named(self, path: str, body: bytes) -> str:
        """Return an address in plain letters, with the object's name in it."""
        return unquote(path)

    def refusal(self, rule: Rule) -> tuple[dict[str, str], bytes]:
        """Return headers and body of a refusal."""
        said = f"<Error><Code>{rule.code}</Code><Message>said by the store</Message></Error>"
        return {"Content-Type": "application/xml"}, said.encode()

    def answer(self, asked: Asked, ask: Callable[[Asked], Answer]) -> Answer:
        """Ask the store."""
        return ask(asked)


@dataclass
class Proxy:
    """The proxy: its address, the rules in force and what passed through."""

    behind: str
    dialect: Dialect = field(default_factory=Dialect)
    rules: list[Rule] = field(default_factory=list)
    log: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def rule(self, *arguments: Any, **options: Any) -> Rule:
        """Put a rule in force."""
        rule = Rule(*arguments, **options)
        with self.lock:
            self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """Let everything pass again."""
        with self.lock:
            self.rules.clear()
            self.log.clear()

    def seen(self, method: str, where: str) -> int:
        """Return how many requests of a method went to a matching address."""
        with self.lock:
            return sum(one == method and re.search(where, target) is not None for one, target, _ in self.log)

    def pick(self, method: str, target: str, headers: dict[str, str]) -> Rule | None:
        """Note a request and return the rule that it falls under."""
        with self.lock:
            self.log.append((method, target, headers))
            return next((rule for rule in self.rules if rule.applies(method, target)), None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: Proxy

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def answer(self) -> None:
        body = self._body()
        named = self.proxy.dialect.named(self.path, body)
        rule = self.proxy.pick(self.command, named, dict(self.headers))
        if rule is not None and rule.how == "refuse":
            self._refuse(rule)
            return
        if rule is not None and rule.how == "delay":
            time.sleep(rule.seconds)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "expect")}
        if "chunked" in headers.pop("Transfer-Encoding", ""):
            headers["Content-Length"] = str(len(body))
        if rule is not None and rule.how == "whole":
            headers = {name: value for name, value in headers.items() if name.lower() != "range"}
        asked = Asked(self.command, self.path, named, headers, body)
        answer = self.proxy.dialect.answer(asked, self._ask)
        self._pass_on(rule.how if rule is not None else None, answer)

    def _ask(self, asked: Asked) -> Answer:
        with contextlib.closing(http.client.HTTPConnection(self.proxy.behind, timeout=30)) as connection:
            connection.request(asked.method, asked.path, asked.body, asked.headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size)
            # A store refuses a body that ends early. moto takes what came, and would do so when this connection to it
            # times out: after the run that came next has written the same object.
            if len(body) < size:
                raise ConnectionError
            return body
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _refuse(self, rule: Rule) -> None:
        headers, said = self.proxy.dialect.refusal(rule)
        self.send_response(rule.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    def _pass_on(self, how: str | None, answer: Answer) -> None:
        data = answer.data
        if how == "lose":
            self._end()
            return
        if how == "shorten":
            data = data[: len(data) // 2]
        if how == "empty":
            data = b""
        if how == "garble":
            data = bytes([data[0] ^ 1]) + data[1:]
        self.send_response(answer.status)
        for name, value in answer.headers:
            unsaid = how in ("shorten", "empty", "whole") and re.match("content-range|x-amz-checksum", name.lower())
            if name.lower() not in _HOP and not unsaid:
                self.send_header(name, value)
        told = [value for name, value in answer.headers if name.lower() == "content-length"]
        self.send_header("Content-Length", (told or ["0"])[0] if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if how in ("reset", "cut"):
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self._end(reset=how == "reset")
            return
        self.wfile.write(data)

    def _end(self, *, reset: bool = True) -> None:
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
        self.connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections that break are what this is for."""


@contextlib.contextmanager
def proxied(behind: str, dialect: Dialect | None = None) -> Iterator[Proxy]:
    """Run a proxy in front of ``host:port``."""
    proxy = Proxy(behind, dialect or Dialect())
    methods = {f"do_{method}": _Handler.answer for method in ("GET", "HEAD", "PUT", "POST", "DELETE")}
    handler = type("Handler", (_Handler,), {"proxy": proxy, **methods})
    server = _Server(("127.0.0.1", 0), handler)
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
