"""Somebody on a socket of this machine, for what calls an address."""

import contextlib
import http.server
import threading


@contextlib.contextmanager
def listening(handler):
    """A server whose requests the class `handler` answers: `.url` is its address, `.told` a list for what came."""

    class Quiet(handler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        server.url, server.told = f"http://127.0.0.1:{server.server_port}", []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # seconds until it sees that it is to end
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
