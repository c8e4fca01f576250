"""A server of documents and files that accepts one report an upload, as a gateway does."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class Upload:
    """What was posted."""

    path: str
    headers: dict[str, str]
    body: bytes


@contextmanager
def accepting(documents: Mapping[str, bytes], files: Path) -> Iterator[tuple[str, list[Upload]]]:
    """Serve documents by their paths, else the files of a folder; yield address and uploads."""
    uploads: list[Upload] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path in documents:
                self._answer(documents[self.path])
            else:
                super().do_GET()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            uploads.append(Upload(self.path, dict(self.headers), body))
            self._answer(b'{"accepted": 1}')

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(files)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", uploads
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
