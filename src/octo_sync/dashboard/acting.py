"""What a person may do on the page Sync, and what people did."""

from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Column, Item, Section, form, listed
from octo_sync.flows.acts import ALLOW, HELD, RETRY, SYNC
from octo_sync.flows.status.report import Status


def acts(source: Source, found: Status) -> list[Section]:
    """What a person may do, and what was done; nothing where nobody may."""
    if source.acts is None:
        return []
    back, items = "sync#acts", list[Item]()
    if found.running:
        items.append(form(SYNC, "Sync now", back))
    else:
        items.append("Nothing is running that could sync: start octo-sync serve.")
    held = [entry for entry in found.quarantine if entry.resource == HELD]
    if len(found.quarantine) > len(held):
        items.append(form(RETRY, "Fetch everything in quarantine again", back))
    for entry in held:
        items += [
            f"{entry.connection}: {entry.reason}",
            form(
                ALLOW,
                f"Mark these rows of {entry.key} deleted",
                back,
                about=entry.connection,
                key=entry.key,
                text=entry.reason,
            ),
        ]
    items.append(
        listed(
            "What people did on pages",
            source.acts.last(),
            Column("When", "instant", lambda act: act.at),
            Column("Who", "text", lambda act: act.who),
            Column("What", "text", lambda act: act.act),
            Column("About", "text", lambda act: " · ".join(filter(None, (act.about, act.key)))),
            Column("Words", "text", lambda act: act.text),
            Column("What came of it", "text", lambda act: act.outcome or "waits for the worker"),
            empty="Nobody has done anything yet.",
        )
    )
    return [Section("Actions", items, id="acts")]
