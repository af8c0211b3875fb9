"""Collects the body of one answer, inflating it in small steps, so that no answer can use more memory than allowed."""

import zlib

STEP = 256 * 1024
INNOCENT = 1024 * 1024
"""Below this size the ratio says nothing: a short list of equal rows compresses very well."""


class BodyBroken(Exception):  # noqa: N818 - translated before anyone sees it
    """It ended before it was whole; trying again may help."""


class BodyInvalid(Exception):  # noqa: N818 - the same
    """It is not what its headers say."""


class BodyTooLarge(Exception):  # noqa: N818 - the same
    """It is larger than one of the caps."""


class Body:
    """Feed the raw chunks, then `finish`. `max_size` counts inflated bytes, `max_inflation` inflated per raw byte."""

    def __init__(self, encoding: str, *, max_size: int, max_inflation: float) -> None:
        self.raw = 0
        self.size = 0
        self._chunks: list[bytes] = []
        self._max_size = max_size
        self._max_inflation = max_inflation
        self._encoding = encoding.strip().lower()
        if self._encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BodyInvalid(f"encoded as {self._encoding[:40]!r}, which was not asked for")
        self._inflater: zlib._Decompress | None = None

    def feed(self, chunk: bytes) -> None:
        """Take one chunk as it came from the wire."""
        self.raw += len(chunk)
        if self._encoding in {"", "identity"}:
            self._keep(chunk)
            return
        try:
            self._inflate(chunk)
        except zlib.error:
            raise BodyInvalid(f"not valid {self._encoding}") from None

    def finish(self) -> bytes:
        """The whole body."""
        if self._inflater is not None and not self._inflater.eof:
            raise BodyBroken("the compressed body ends too early")
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    def _inflate(self, data: bytes) -> None:
        while data:
            if self._inflater is None or self._inflater.eof:
                if self._inflater is not None and not data.strip(b"\0"):
                    return  # padding after the last gzip member
                self._inflater = zlib.decompressobj(self._window_bits(data))
            piece = self._inflater.decompress(data, STEP)
            self._keep(piece)
            data = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            while not data and len(piece) == STEP and not self._inflater.eof:
                # All input is taken in, and more output than STEP may still be waiting.
                piece = self._inflater.decompress(b"", STEP)
                self._keep(piece)

    def _window_bits(self, data: bytes) -> int:
        if self._encoding != "deflate":
            return 16 + zlib.MAX_WBITS
        # "deflate" should be zlib's format and is raw at some servers; zlib's first byte says method 8.
        return zlib.MAX_WBITS if data[0] & 0x0F == 8 and data[0] >> 4 <= 7 else -zlib.MAX_WBITS  # noqa: PLR2004

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._max_size:
            raise BodyTooLarge(f"larger than {self._max_size:,} bytes")
        if self.size > INNOCENT and self.size > self.raw * self._max_inflation:
            raise BodyTooLarge(f"more than {self._max_inflation:g} times its compressed size")
        if data:
            self._chunks.append(data)
