"""An object store in memory. It speaks as much of S3 as delta-rs asks for, and refuses some of what is to be written.

Half of what it refuses it has done before: the answer alone is lost.
"""

import contextlib
import hashlib
import random
import re
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"


class Objects(ThreadingHTTPServer):
    """The store, while the block lasts. `share` of the writes are refused; `refused` says how many, before and after."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, seed):
        super().__init__(("127.0.0.1", 0), _Asked)
        self.share, self.refused, self.there = 0.0, Counter(), {}
        self.lock, self.chance = threading.Lock(), random.Random(seed)

    @property
    def environment(self):
        """What tells delta-rs where it is."""
        place = {"ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}", "ALLOW_HTTP": "true", "REGION": "us-east-1"}
        return {
            f"AWS_{name}": value for name, value in {**place, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items()
        }

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return super().__enter__()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)

    def handle_error(self, *_):
        """Who asks may be killed in the middle."""


class _Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Objects

    def log_message(self, *_):
        pass

    def _parts(self):
        asked = urlsplit(self.path)
        return unquote(asked.path).removeprefix(f"/{BUCKET}").lstrip("/"), parse_qs(asked.query, keep_blank_values=True)

    def _answer(self, code, body=b"", etag="", **headers):
        self.send_response(code)
        for name, value in {"Content-Length": len(body), "ETag": etag, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _write(self, work):
        """Do it and say so, or refuse it, before or after."""
        with self.server.lock:
            luck = self.server.chance.random() / self.server.share if self.server.share else 1.0
            answer = work() if luck >= 0.5 else None
        if luck < 1:
            self.server.refused["before" if luck < 0.5 else "after"] += 1
            answer = 503, b"<Error><Code>SlowDown</Code></Error>"
        self._answer(*answer)

    def do_PUT(self):
        key, asked = self._parts()
        assert not asked, asked
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("x-amz-decoded-content-length"):
            raise NotImplementedError

        def put():
            if self.headers.get("If-None-Match") == "*" and key in self.server.there:
                return 412, b"<Error><Code>PreconditionFailed</Code></Error>"
            self.server.there[key] = body, time.time()
            return 200, b"", _etag(body)

        with contextlib.suppress(OSError):
            self._write(put)

    def do_POST(self):
        _, asked = self._parts()
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert "delete" in asked, asked
        keys = re.findall("<Key>(.*?)</Key>", body)

        def delete():
            for key in keys:
                self.server.there.pop(key, None)
            return (
                200,
                f"<DeleteResult>{''.join(f'<Deleted><Key>{k}</Key></Deleted>' for k in keys)}</DeleteResult>".encode(),
            )

        self._write(delete)

    def do_GET(self):
        key, asked = self._parts()
        if "list-type" in asked:
            return self._answer(200, self._listed(**{name.replace("-", "_"): v[0] for name, v in asked.items()}))
        if key not in self.server.there:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        body, at = self.server.there[key]
        about = {"etag": _etag(body), "Last_Modified": formatdate(at, usegmt=True)}
        if not (part := self.headers.get("Range")):
            return self._answer(200, body, **about)
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", part).groups()
        start = int(first) if first else max(0, len(body) - int(last))
        end = min(int(last) if first and last else len(body) - 1, len(body) - 1)
        return self._answer(206, body[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(body)}", **about)

    def do_HEAD(self):
        self.do_GET()

    def _listed(self, *, prefix="", delimiter="", start_after="", **_):
        found, folders = [], set()
        with self.server.lock:
            for key, (body, at) in sorted(self.server.there.items()):
                if not key.startswith(prefix) or key <= start_after:
                    continue
                inside, cut, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
                if cut:
                    folders.add(prefix + inside + cut)
                else:
                    when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
                    found.append(
                        f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified>"
                        f"<ETag>{escape(_etag(body))}</ETag><Size>{len(body)}</Size></Contents>"
                    )
        parts = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders))
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}{parts}</ListBucketResult>".encode()


def _etag(body):
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
