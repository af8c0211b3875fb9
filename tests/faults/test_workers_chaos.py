"""Three receivers and four workers on PostgreSQL while all of it fails: in the end nothing that was acknowledged is lost, and
the copy is equal to the service, and to that of one process on one machine.

Two workers are killed, one stands still until its connections are taken from it and then goes on, a receiver is cut off from
the server and lives on, the server is killed and started again, and a tenth of the service's answers are errors. With Delta
tables the one that stands still is who publishes, in the middle of it, and goes on when another has published all there is; an
object store refuses a fifth of what is written to it, half of that after it was done.
"""

import contextlib
import random
import re
import socket
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from tests.faults.objects import BUCKET, Objects
from tests.faults.serving import SLACK, TOKEN, Pourer, Program, Sandbox, free_port, go_on, notifications, stop, until
from tests.faults.workers import Workers, differing

STEPS = 20


@dataclass(frozen=True)
class Size:
    """What is done: changes, of which some are told to all connections and those of a booking to the token that made it, and
    deliveries beside the service's own."""

    connections: int = 16
    changes: int = 200
    told_to_all: int = 120
    deliveries: int = 1500
    has_own_tokens: bool = False

    def sandbox(self, directory, seed):
        """A service of this size."""
        own = ["--tokens", self.connections] if self.has_own_tokens else []
        bookings = 20 * self.connections if own else 60
        made = Sandbox(directory, bookings=bookings, products=2, days=30, more=["--frozen", "--seed", seed, *own])
        made.token = "sandbox-token-0" if own else TOKEN
        return made


FAULTS = (
    {"fault": "status_5xx", "share": 0.06},
    {"fault": "reset", "share": 0.02},
    {"fault": "truncated", "share": 0.02},
    {"fault": "delivery_doubled", "share": 0.2},
    {"fault": "delivery_reordered", "share": 0.3, "seconds": 1},
)


class Balancer(threading.Thread):
    """Hands each connection to one of several ports after the other; one that does not take it is passed over."""

    def __init__(self, port, ports):
        super().__init__(daemon=True)
        self._ports, self._turn, self._carried = ports, 0, set()
        self.port, self._socket = port, socket.create_server(("127.0.0.1", port))

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client:
            for _ in self._ports:
                self._turn += 1
                with contextlib.suppress(OSError):
                    place = "127.0.0.1", self._ports[self._turn % len(self._ports)]
                    with socket.create_connection(place, timeout=1) as server:
                        server.settimeout(None)
                        self._carried |= {client, server}
                        back = threading.Thread(target=_carry, args=(server, client), daemon=True)
                        back.start()
                        _carry(client, server)
                        back.join(10 * SLACK)
                        return

    def close(self):
        """Let nobody in any more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def cut(self):
        """And end what is under way."""
        self.close()
        for each in [*self._carried]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _carry(source, target):
    with contextlib.suppress(OSError):
        while got := source.recv(65536):
            target.sendall(got)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Fleet(Workers):
    """The same with webhooks, which come by way of the balancer."""

    def __init__(self, directory, sandbox, address, lake, size):
        self.only = None if size.has_own_tokens else TOKEN
        names, token = [f"shop{n}" for n in range(size.connections)], self.only or "sandbox-token-{}"
        super().__init__(directory, sandbox, address, names=names, concurrency=2, lake=lake, token=token)
        self.lake = lake
        self.port = free_port()
        file = directory / "pipeline.toml"
        file.write_text(
            file.read_text().replace('confirm_after = ["0.5s"]', 'confirm_after = ["0.5s", "2s"]')
            + f'[webhooks]\nurl = "http://127.0.0.1:{self.port}"\n'
        )

    def receiver(self, port, way):
        """One that reaches the server by a way of its own."""
        log = self.directory / f"receiver-{port}.log"
        journal = re.sub(r":\d+/", f":{way}/", self.address, count=1)
        own = {"OCTO_SYNC_WEBHOOKS__BIND": f"127.0.0.1:{port}", "OCTO_SYNC_JOURNAL": journal}
        return Program("serve", "-p", "pipeline.toml", "--only", "receiver", cwd=self.directory, log=log, env=own)

    def receivers(self, stack, ports):
        """One for each port, and the way to the server that each has of its own."""
        ways = [Balancer(free_port(), [urlsplit(self.address).port]) for _ in ports]
        for way in ways:
            stack.enter_context(contextlib.closing(way)).start()
        made = [stack.enter_context(self.receiver(*each)) for each in zip(ports, [w.port for w in ways], strict=True)]
        for port in ports:
            until(lambda port=port: self.is_ready(port), 30, self.said)
        return ways, made

    def cut_off(self, way, port):
        """A receiver loses its way to the server, and lives."""
        way.cut()
        until(lambda: not self.is_ready(port), 30, self.said)

    def change(self, seed, size):
        """What changes in one step."""
        some, all_ = ["note", "redeem"], ["closeout", "capacity", "product"]
        for kinds, count in ((some, size.changes - size.told_to_all), (all_, size.told_to_all)):
            asked = {"changes": count // STEPS, "seed": f"{seed}/{kinds[0]}", "kinds": kinds, "token": self.only}
            assert len(self.sandbox.control("POST", "/traffic", asked)["changes"]) == count // STEPS

    def working(self):
        """The processes that own a connection, and the one that publishes."""
        return {*self.owners().values(), *(pid for (pid,) in self.ask("select pid from leases where name = 'writer'"))}

    def stands_still(self, workers):
        """One of the workers, stopped in the middle of its work: where there are Delta tables, of writing them."""

        def caught():
            for one in workers:
                stop(one.pid)
                if self.publishes(one) if self.lake else one.pid in self.working():
                    return one
                go_on(one.pid)
            return None

        return until(caught, 30, self.said)

    def publishes(self, worker):
        """Whether it has read what it writes into the Delta tables, and is not at the end."""
        return (self.directory / f".copy.spool/{worker.pid}/lake/octo.read.duckdb").exists()

    def until_shown(self):
        """What has landed is published, and in the Delta tables too where there are any."""
        until(lambda: self.differing() == {}, 30, lambda: (self.differing(), self.said()))

    def goes_on(self, stood):
        """It finds others at its work, and itself with a new run of its own."""
        until(lambda: stood.pid not in self.working(), 60, self.said)
        before = stood.said()
        go_on(stood.pid)
        until(lambda: "works on this project" in stood.said().removeprefix(before), 60, self.said)
        until(lambda: not self.publishes(stood), 60, self.said)

    def differing(self):
        """What has landed and is not published, or is not the same in the Delta tables."""
        left = self.lake and self.ask("select distinct name from landing.changed where name like 'core.%%'")
        return left or (self.lake and differing(self.address, self.lake)) or {}

    def ends(self, workers, receivers):
        """Who was not killed has lived until now, and the copy is equal to the service."""
        for process in (*workers, *receivers):
            assert process.code is None, process.said()[-2000:]
        assert self.runs()["killed"] >= 1
        named = "select pid from leases where name like 'worker %%'"
        until(lambda: {pid for (pid,) in self.ask(named)} == {each.pid for each in workers}, 90, self.said)
        for process in workers:
            assert process.terminate()[0] == 143
        code, said = self.run("verify", "--live")
        assert code == 0, f"{said}\n{self.said()}"
        assert self.on_one_machine() == {}


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.deep(60)) for seed in range(5)])
def test_nothing_acknowledged_is_lost_and_the_copy_ends_equal(seed, tmp_path, postgres_server, postgres_database):
    with shaken(seed, tmp_path, postgres_server, postgres_database):
        pass


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.deep(300)) for seed in range(20)])
def test_64_connections_1000_changes_and_5000_deliveries(
    seed, tmp_path, postgres_server, postgres_database, monkeypatch
):
    size = Size(connections=64, changes=1000, told_to_all=40, deliveries=5000, has_own_tokens=True)
    with Objects(seed) as objects:
        for name, value in objects.environment.items():
            monkeypatch.setenv(name, value)
        objects.share = 0.2
        with shaken(seed, tmp_path, postgres_server, postgres_database, f"s3://{BUCKET}/octo", size):
            objects.share = 0.0
        assert min(objects.refused["before"], objects.refused["after"]) > 5


@contextlib.contextmanager
def shaken(seed, tmp_path, postgres_server, postgres_database, lake="", size=Size()):
    """All of it fails before the block, and nothing has when it has ended."""
    chance = random.Random(f"fleet/{seed}")
    events = ["kill", "kill", "still", "receiver", "server"]
    moments = dict(
        zip(sorted(chance.sample(range(2, STEPS), len(events))), chance.sample(events, len(events)), strict=True)
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(postgres_server.no_deadlock())
        sandbox = stack.enter_context(size.sandbox(tmp_path / "s", seed))
        fleet = Fleet(tmp_path / "copy", sandbox, postgres_database, lake, size)
        ports = [free_port() for _ in range(3)]
        stack.enter_context(contextlib.closing(Balancer(fleet.port, ports))).start()
        ways, receivers = fleet.receivers(stack, ports)
        workers = [stack.enter_context(fleet.worker()) for _ in range(4)]
        until(lambda: len(set(fleet.owners().values())) > 1, 30, fleet.said)
        fleet.until_clean()
        fleet.until_shown()
        secret = fleet.secret()
        sandbox.faults(*FAULTS)
        bodies = notifications(sandbox.state())
        pourers = [Pourer(fleet, secret, bodies, f"{seed}/{n}", f"{seed}/{n}", pause=0.005) for n in range(2)]
        for pourer in pourers:
            pourer.start()
        stood = None
        for step in range(STEPS):
            fleet.change(f"fleet/{seed}/{step}", size)
            match moments.get(step):
                case "kill":
                    workers.pop(chance.randrange(len(workers))).kill()
                case "still":
                    stood = fleet.stands_still(chance.sample(workers, len(workers)))
                    workers.remove(stood)
                case "receiver":
                    fleet.cut_off(*chance.choice(list(zip(ways, ports, strict=True))))
                case "server":
                    postgres_server.stop(immediately=True)
                    postgres_server.start()
            time.sleep(1.0 if lake else 0.3)  # a publication takes longer than a landing
        if not lake:
            fleet.goes_on(stood)
        until(lambda: sum(len(p.acknowledged) for p in pourers) >= size.deliveries, 60, "deliveries")
        acknowledged = {body for pourer in pourers for body in pourer.end()}
        sandbox.faults()
        yield
        until(lambda: sandbox.deliveries()["idle"], 60, "deliveries of the service")
        fleet.until_clean()
        assert fleet.kept(acknowledged) == dict.fromkeys(acknowledged, 1)
        assert min(fleet.kept(sandbox.acknowledged()).values(), default=0) > 0
        if lake:
            fleet.until_shown()
            fleet.goes_on(stood)
        fleet.until_shown()
        fleet.ends([*workers, stood], receivers)
