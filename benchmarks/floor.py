"""Fetch the same answers and throw them away: the floor under every side. Runs in any environment that has httpx.

`--transport client` is octo-sync's client as it is (bounds, retries, digests) and `octo` its transport alone, both in
octo-sync's environment; `httpx` is httpx's own transport, `aiohttp` the one of httpx-aiohttp; `raw` is a plain asyncio
connection without any HTTP library: what the service and the loop can do at most. CPU includes loading the library.
"""

import argparse
import asyncio
import calendar
import datetime as dt
import json
import os
import random
import resource
import time
import urllib.request
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo


def months(first, last):
    while first <= last:
        end = first.replace(day=calendar.monthrange(first.year, first.month)[1])
        yield first, min(end, last)
        first = end + dt.timedelta(days=1)


def jobs(products, today, before, after):
    last = today + dt.timedelta(days=after)
    for first, end in months(today - dt.timedelta(days=before), last):
        yield "GET", f"/bookings?localDateStart={first}&localDateEnd={end}", None
    for product in products:
        start = dt.datetime.now(ZoneInfo(product["timeZone"])).date()  # today at the venue
        for option in product["options"]:
            for first, end in months(start, start + dt.timedelta(days=after)):
                yield (
                    "POST",
                    "/availability",
                    {
                        "productId": product["id"],
                        "optionId": option["id"],
                        "localDateStart": str(first),
                        "localDateEnd": str(end),
                    },
                )


async def by_httpx(options, headers, found, transport):
    import httpx  # noqa: PLC0415 - the raw way runs without it

    if transport == "aiohttp":
        from httpx_aiohttp import AiohttpTransport  # noqa: PLC0415 - only in its own environment

        chosen = AiohttpTransport(limits=httpx.Limits(max_connections=options.concurrency))
    elif transport == "octo":
        from octo_sync.octo.transport import AiohttpTransport  # noqa: PLC0415 - the same

        chosen = AiohttpTransport(None)
    else:
        chosen = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=options.concurrency))
    async with httpx.AsyncClient(headers=headers, timeout=600.0, transport=chosen) as client:
        waiting, count, size = iter(found), 0, 0

        async def worker():
            nonlocal count, size
            for method, path, body in waiting:
                request = client.build_request(method, options.base + path, json=body)
                answer = await client.send(request, stream=True)
                assert answer.status_code == 200
                async for chunk in answer.aiter_raw():
                    size += len(chunk)
                await answer.aclose()
                count += 1

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(options.concurrency)))
        return count, size, time.perf_counter() - started


async def by_client(options, headers, found):
    from octo_sync.model import Connection, Limits, Secret  # noqa: PLC0415 - only in octo-sync's environment
    from octo_sync.octo import endpoints  # noqa: PLC0415
    from octo_sync.octo.client import OctoClient  # noqa: PLC0415

    class Clock:
        def now(self):
            return dt.datetime.now(dt.UTC)

    def call(path, body):
        asked = body or dict(parse_qsl(urlsplit(path).query))
        window = dt.date.fromisoformat(asked["localDateStart"]), dt.date.fromisoformat(asked["localDateEnd"])
        if body:
            return endpoints.availability(body["productId"], body["optionId"], *window)
        return endpoints.bookings(start=window[0], end=window[1])

    connection = Connection(
        name="floor",
        base_url=options.base,
        token=Secret(headers["Authorization"].removeprefix("Bearer ")),
        capabilities=tuple(headers["Octo-Capabilities"].split(",")),
        limits=Limits(concurrency=options.concurrency),
    )
    calls = [call(path, body) for _, path, body in found]
    waiting, count, size = iter(calls), 0, 0
    async with OctoClient(connection, clock=Clock(), random=random.Random(1)) as octo:

        async def worker():
            nonlocal count, size
            for each in waiting:
                answer = await octo.send(each)
                size += len(answer.body)
                count += 1

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(options.concurrency)))
        return count, size, time.perf_counter() - started


async def by_hand(options, headers, found):
    url = urlsplit(options.base)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    waiting, count, size = iter(found), 0, 0

    async def worker():
        nonlocal count, size
        reader, writer = await asyncio.open_connection(url.hostname, url.port, limit=1 << 20)
        for method, path, body in waiting:
            content = json.dumps(body).encode() if body else b""
            head = (
                f"{method} {url.path}{path} HTTP/1.1\r\nHost: {url.netloc}\r\n{lines}Content-Length: {len(content)}\r\n"
            )
            writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + content)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200")
            length = int(answer.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            content = await reader.readexactly(length)
            size += len(content)
            count += 1
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(options.concurrency)))
    return count, size, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base")
    parser.add_argument("--transport", choices=["client", "octo", "httpx", "aiohttp", "raw"], default="client")
    parser.add_argument("--concurrency", type=int, default=6, help="octo-sync's default")
    parser.add_argument("--today", type=dt.date.fromisoformat, required=True)
    parser.add_argument("--before", type=int, required=True)
    parser.add_argument("--after", type=int, required=True)
    options = parser.parse_args()
    headers = {**json.loads(os.environ["OCTO_BENCH_HEADERS"]), "Accept-Encoding": "identity"}
    with urllib.request.urlopen(urllib.request.Request(f"{options.base}/products", headers=headers)) as answer:  # noqa: S310
        found = list(jobs(json.load(answer), options.today, options.before, options.after))
    if options.transport == "raw":
        work = by_hand(options, headers, found)
    elif options.transport == "client":
        work = by_client(options, headers, found)
    else:
        work = by_httpx(options, headers, found, options.transport)
    before = resource.getrusage(resource.RUSAGE_SELF)
    count, size, wall = asyncio.run(work)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"answers": count, "bytes": size, "wall": wall, "cpu": cpu}))


if __name__ == "__main__":
    main()
