"""Who owns which connection, of several workers: written down when it is taken, and held against what is done as an owner."""

import sqlite3

__all__ = ["Owners"]


class Owners:
    """`world` is told what is wrong."""

    def __init__(self, world):
        self._world = world
        self._given = {}
        """Whom each fence of each connection was given to."""
        self._now = {}
        """Connection → its newest fence and who has it, or had it last."""

    def took(self, process, connection, fence):
        world, server = self._world, self._world.server
        if self._now.get(connection) == (fence, process):
            return
        if self._given.setdefault((connection, fence), process) is not process:
            world.fail(f"two workers own {connection} with the same fence {fence}")
        newest, before = self._now.get(connection, (0, None))
        if (holder := server.owner(connection)) is not process and server.serves(process):
            world.fail(f"{process.name} owns {connection}, whose lock {holder and holder.name} has")
        if fence <= newest:
            # Or it stood still in the middle of taking it: then all that it does with it is refused.
            if server.serves(process):
                world.fail(f"{process.name} has taken {connection} with fence {fence}, which is not above {newest}")
            return
        self._now[connection] = fence, process
        world.note("take", process.name, connection)
        world.count("connection taken")
        if before not in (None, process):
            world.count(f"connection taken over from one {'that stood still' if before.alive else 'killed'}")

    def gave(self, process, connections):
        for name in connections:
            if self._now.get(name, (0, None))[1] is process:
                self._now[name] = self._now[name][0], None

    def acts(self, process, connections):
        """It was just let claim, end or forget something of them, as who owns them."""
        for name in connections:
            fence, owner = self._now.get(name, (0, None))
            if owner is not process:
                taken = f"{owner.name} has taken over ({fence})" if owner else "it gave them back"
                self._world.fail(f"{process.name} was let go on with subjects of {name}, though {taken}")

    def in_order(self, alive):
        """Each connection is owned by one of those who live, with the fence that the journal names, or free."""
        world = self._world
        with sqlite3.connect(f"file:{world.pipeline.journal_path}?mode=ro", uri=True) as db:
            asked = "select name, fence from leases where released_at is null and name not like 'worker %'"
            rows = db.execute(asked).fetchall()
        db.close()
        for name, fence in rows:
            connection = name.removeprefix("connection ")
            owner = self._now.get(connection, (0, None))[1]
            if name != "writer" and (owner not in alive or self._now[connection][0] != fence):
                world.fail(f"{connection} is left to {owner and owner.name}, who does not own it ({fence})")
        named = {name for name, _ in rows}
        for connection in world.connections:
            holder = world.server.owner(connection)
            if holder is not None and (holder not in alive or f"connection {connection}" not in named):
                world.fail(f"the lock of {connection} is left with {holder.name}, who does not own it")
        if not alive and rows:
            world.fail(f"everybody has ended, and these are not free: {rows}")
