"""What each question must answer, worked out in plain Python from the sandbox's own state; no SQL, nothing of octo_sync."""

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from zoneinfo import ZoneInfo

DAY = dt.timedelta(days=1)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SOLD = ("CONFIRMED", "REDEEMED", "NOSHOW")
"""Who does not come has bought all the same."""


@dataclass(frozen=True)
class Channel:
    """One connection: whose bookings, under which name, in which business time zone, how far."""

    connection: str
    name: str
    zone: str
    state: dict
    slots: list
    bookings: tuple[int, int]
    availability: tuple[int, int]
    known: int = 0
    """Days from today to the first of which all bookings are known, by what was asked for last."""
    unanswered: frozenset[str] = frozenset()
    """Months of travel of which no answer for bookings was ever read."""
    skipped: dt.date | None = None
    """The last day of travel, not after today, for which the last answer of its month did not speak."""
    pulled: dt.datetime | None = None
    """When it was pulled first."""
    active: bool = True
    """Whether the pipeline still has it: nobody knows what became of what lay ahead when it left."""
    supplier: str | None = None
    """The first of the connections that sell for its supplier; by itself when None."""

    @property
    def seller(self):
        """Whose products and departures it sells."""
        return self.supplier or self.connection

    def known_from(self, pulled):
        """Since when everything made or travelling is in the copy: what was asked for, or since the first pull, `pulled`; but
        nothing before the end of a month that is not to come and was never answered."""
        zone = ZoneInfo(self.zone)
        today = instant(self.state["now"]).astimezone(zone).date()
        holes = [month for month in self.unanswered if month <= f"{today:%Y-%m}"]
        if not holes:
            return min(today + DAY * self.known, pulled.astimezone(zone).date())
        return (dt.date.fromisoformat(f"{max(holes)}-01") + 31 * DAY).replace(day=1)

    def knows_month(self, month, read=None):
        """Whether every booking that travels in the month is in the copy as it became: none is too old, the last day lies in
        what was asked for, and where that is over it was asked for after it; `read` is when, else now."""
        zone = ZoneInfo(self.zone)
        today = instant(self.state["now"]).astimezone(zone).date()
        read = read.astimezone(zone).date() if read else today
        last = (month + 31 * DAY).replace(day=1) - DAY
        return (
            today + DAY * self.known <= month
            and last <= read + DAY * self.bookings[1]
            and (read > last or last >= today)
        )

    def knows(self, day):
        """Whether every booking made on that day in the business zone must be in the copy: it is over, none is too old, and
        no month in which one of them may travel is missing. Where it is still yesterday, one may travel yesterday."""
        today = instant(self.state["now"]).astimezone(ZoneInfo(self.zone)).date()
        first = f"{day - DAY:%Y-%m}"
        if self.skipped and self.skipped >= day:
            return False
        return today + DAY * self.known <= day < today and not any(month >= first for month in self.unanswered)


def instant(text):
    return None if text is None else dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def month_of(day):
    """The first day of its month."""
    return day.replace(day=1)


def naive(text):
    return None if text is None else dt.datetime.fromisoformat(text).replace(tzinfo=None)


def grouped(rows, *keys):
    """Rows by the values of some of their fields."""
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[k] for k in keys)].append(row)
    return found


def total(rows, field):
    """SQL's sum: of what is there, None when nothing is."""
    known = [row[field] for row in rows if row[field] is not None]
    return sum(known) if known else None


def money(minor, precision):
    """An amount from its minor units, exact; None where there is none."""
    return None if minor is None else Decimal(minor).scaleb(-precision)


def share(part, whole):
    return part / whole if part is not None and whole else None


def people(bookings):
    """How many come with them, of those that say it: 0 with none, None where there are some and not one says it."""
    return total(bookings, "guests") if bookings else 0


def _days_before(start, moment, venue):
    """Midnights at the venue between a moment and a start, which is the venue's own wall clock."""
    return None if start is None or moment is None else (start.date() - moment.astimezone(venue).date()).days


class Truth:
    """Bookings, tickets and departures of all channels as plain dictionaries, and the questions over them."""

    def __init__(self, channels):
        self.channels = channels
        self.products, self.options, self.units = {}, {}, {}
        self.bookings, self.tickets, self.departures = [], [], []
        self.sold_through = defaultdict(list)
        for channel in channels:
            self._catalogue(channel)
            self._sales(channel)
        for channel in sorted(channels, key=lambda c: not c.active):
            self._slots(channel)

    def _catalogue(self, channel):
        if channel.active:
            self.sold_through[channel.seller].append(channel.connection)
        for product in channel.state["products"]:
            self.products[channel.seller, product["id"]] = product
            for option in product["options"]:
                self.options[channel.seller, product["id"], option["id"]] = option
                for unit in option["units"]:
                    self.units[channel.seller, product["id"], option["id"], unit["id"]] = unit

    def _sales(self, channel):
        zone = ZoneInfo(channel.zone)
        today = instant(channel.state["now"]).astimezone(zone).date()
        for raw in channel.state["bookings"]:
            day = dt.date.fromisoformat(raw["local_date"])
            reach = [today + DAY * n for n in channel.bookings]
            if raw["test"] or not reach[0] <= day <= reach[1]:
                continue
            ids = (channel.seller, raw["product_id"], raw["option_id"])
            product, option = self.products[ids[:2]], self.options[ids]
            start = naive(raw["local_start"])
            units = [self.units[*ids, item["unit_id"]] for item in raw["unit_items"]]
            cancelled = instant(raw["utc_cancelled_at"])
            booked, confirmed = (
                at and at.astimezone(zone).date()
                for at in map(instant, (raw["utc_created_at"], raw["utc_confirmed_at"]))
            )
            venue = ZoneInfo(product["time_zone"])
            booking = {
                "raw": raw,
                "connection": channel.connection,
                "seller": channel.seller,
                "channel_name": channel.name,
                "product_name": product["title"]["en"],
                "option_name": option["title"]["en"],
                "booking_uuid": raw["uuid"],
                "status": raw["status"],
                "sold": raw["status"] in SOLD,
                "was_sold": raw["status"] in SOLD
                or (raw["status"] == "CANCELLED" and raw["utc_confirmed_at"] is not None),
                "cancelled": raw["status"] == "CANCELLED",
                "redeemed": raw["status"] == "REDEEMED"
                or (raw["utc_redeemed_at"] is not None and raw["status"] != "NOSHOW"),
                "booking_date": booked,
                "sold_date": max(booked, confirmed or booked),
                "cancelled_date": cancelled.astimezone(zone).date() if cancelled else None,
                "start": start,
                "whole_day": product["availability_type"] == "OPENING_HOURS",
                "travel_date": start.date() if start else None,
                "lead": _days_before(start, instant(raw["utc_created_at"]), venue),
                "notice": _days_before(start, cancelled, venue),
                "currency": raw["currency"],
                **{part: money(raw[part], raw["precision"]) for part in ("original", "retail", "net")},
                "tax": money(sum(tax["retail"] for tax in raw["taxes"]), raw["precision"]),
                "supplier_name": channel.state["supplier"]["name"],
                "guests": None if raw.get("nobody_counts") else sum(unit["pax_count"] for unit in units),
                "slot": (*ids, raw["availability_id"]),
            }
            self.bookings.append(booking)
            self.tickets += [
                {
                    "booking": booking,
                    "raw": item,
                    "unit_type": unit["type"],
                    "unit_name": unit["title"]["en"],
                    "guests": unit["pax_count"],
                    **{
                        part: item["total"] and money(item["total"][part], raw["precision"])
                        for part in ("retail", "net")
                    },
                }
                for item, unit in zip(raw["unit_items"], units, strict=True)
            ]

    def _slots(self, channel):
        now = instant(channel.state["now"])
        sold = grouped([b for b in self.bookings if b["sold"]], "slot")
        there = {d["slot"] for d in self.departures}
        for raw in channel.slots:
            day = dt.date.fromisoformat(raw["local_date"])
            today = now.astimezone(ZoneInfo(raw["time_zone"])).date()
            if not today + DAY * channel.availability[0] <= day <= today + DAY * channel.availability[1]:
                continue
            ids = (channel.seller, raw["product_id"], raw["option_id"], raw["availability_id"])
            if ids in there:  # seen through another connection already
                continue
            ours = sold.get((ids,), [])
            told = raw["capacity"] is not None and 0 < raw["capacity"] >= raw["vacancies"]
            measured = told and not raw["closed"]
            self.departures.append(
                {
                    "product_name": self.products[ids[:2]]["title"]["en"],
                    "product": ids[:2],
                    "followed": channel.active or day < today,
                    "option_name": self.options[ids[:3]]["title"]["en"],
                    "travel_date": day,
                    "start": naive(raw["local_start"]),
                    "whole_day": raw["all_day"],
                    "utc_start": instant(raw["utc_start"]),
                    "end": naive(raw["local_end"]),
                    "utc_cutoff": instant(raw["utc_cutoff"]),
                    "closed": raw["closed"],
                    "sold_out": raw["status"] == "SOLD_OUT",
                    "capacity": raw["capacity"],
                    "vacancies": raw["vacancies"],
                    "taken": raw["capacity"] - raw["vacancies"] if measured else None,
                    "rate": share(raw["capacity"] - raw["vacancies"], raw["capacity"]) if measured else None,
                    "our_bookings": len(ours),
                    "our_guests": None if any(b["guests"] is None for b in ours) else sum(b["guests"] for b in ours),
                    "slot": ids,
                    "status": raw["status"],
                    "available": raw["available"],
                }
            )

    # -- what the marts' columns hold ------------------------------------------------------------------------------

    def dim_product(self):
        states = {channel.seller: channel.state for channel in self.channels}
        return [
            {
                "product_key": f"{seller}|{product_id}",
                "supplier_key": seller,
                "connection_id": min(self.sold_through[seller]),
                "sold_through": ",".join(sorted(self.sold_through[seller])),
                "product_name": product["title"]["en"],
                "title": product["title"]["en"],
                "internal_name": product["internal_name"],
                "product_code": product["reference"],
                "supplier_id": states[seller]["supplier"]["id"],
                "supplier_name": states[seller]["supplier"]["name"],
                "time_zone": product["time_zone"],
                "availability_type": product["availability_type"],
                "default_currency": product["default_currency"],
                "pricing_per": product["pricing_per"],
                "is_retired": False,
                "retired_at_utc": None,
            }
            for (seller, product_id), product in self.products.items()
        ]

    def dim_option(self):
        return [
            {
                "option_key": f"{seller}|{product_id}|{option_id}",
                "product_key": f"{seller}|{product_id}",
                "product_name": self.products[seller, product_id]["title"]["en"],
                "option_name": option["title"]["en"],
                "option_code": option["reference"],
                "is_default": option["default"],
                "is_retired": False,
            }
            for (seller, product_id, option_id), option in self.options.items()
        ]

    def fct_bookings(self):
        told = ("booking_uuid", "supplier_name", "was_sold")
        milestones = ("created", "updated", "expires", "confirmed", "cancelled", "redeemed")
        return [
            {
                **{name: b[name] for name in told},
                "booking_id": b["raw"]["id"],
                "supplier_reference": b["raw"]["supplier_reference"],
                "reseller_reference": b["raw"]["reseller_reference"],
                "product_code": self.products[b["slot"][:2]]["reference"],
                "is_freesale": b["raw"]["freesale"],
                "currency_precision": b["raw"]["precision"],
                "original_amount": b["original"],
                "tax_amount": b["tax"],
                "cancellation_refund": b["raw"]["refund"],
                "unit_count": len(b["raw"]["unit_items"]),
                "local_start_at": b["start"],
                "utc_start_at": instant(b["raw"]["utc_start"]) if b["start"] else None,
                **{f"utc_{name}_at": instant(b["raw"][f"utc_{name}_at"]) for name in milestones},
            }
            for b in self.bookings
        ]

    def fct_guests(self):
        return [
            {
                "unit_item_uuid": t["raw"]["uuid"],
                "booking_uuid": t["booking"]["booking_uuid"],
                "unit_id": t["raw"]["unit_id"],
                "unit_name": t["unit_name"],
                "unit_type": t["unit_type"],
                "booking_status": t["booking"]["status"],
                "is_sold": t["booking"]["sold"],
                "is_cancelled": t["booking"]["cancelled"],
                "pax_count": t["guests"],
                "currency": t["booking"]["currency"] if t["retail"] is not None else None,
                "retail_amount": t["retail"],
                "net_amount": t["net"],
                "margin_amount": None if t["net"] is None else t["retail"] - t["net"],
                "utc_redeemed_at": instant(t["raw"]["utc_redeemed_at"]),
            }
            for t in self.tickets
        ]

    def agg_bookings_daily(self):
        answer = []
        keys = ("booking_date", "connection", "product_name", "currency")
        for (day, connection, product, currency), rows in grouped(self.bookings, *keys).items():
            sold = [b for b in rows if b["sold"]]
            with_net = [b | {"margin": b["retail"] - b["net"]} for b in sold if b["net"] is not None]
            answer.append(
                {
                    "booking_date": day,
                    "connection_id": connection,
                    "product_name": product,
                    "currency": currency,
                    "bookings": len(rows),
                    "sold": len(sold),
                    "cancelled": sum(b["cancelled"] for b in rows),
                    "guests": total(sold, "guests"),
                    **{f"{part}_amount": total(sold, part) for part in ("original", "retail", "net", "tax")},
                    "margin_amount": total(with_net, "margin"),
                    "sold_without_net": len(sold) - len(with_net),
                }
            )
        return answer

    def agg_occupancy_daily(self):
        answer = []
        for (product, day), rows in grouped(self.departures, "product", "travel_date").items():
            measured = [d for d in rows if d["taken"] is not None]
            answer.append(
                {
                    "product_key": "|".join(product),
                    "travel_date": day,
                    "departures": len(rows),
                    "measured_departures": len(measured),
                    "capacity": total(measured, "capacity"),
                    "taken": total(measured, "taken"),
                    "sold_out_departures": sum(d["sold_out"] for d in rows),
                    "closed_departures": sum(d["closed"] for d in rows),
                    "our_bookings": sum(d["our_bookings"] for d in rows),
                }
            )
        return answer

    # -- what the questions ask -----------------------------------------------------------------------------------

    def sold(self, first, last, by="travel_date"):
        return [b for b in self.bookings if b["sold"] and b[by] is not None and first <= b[by] <= last]

    def q1(self, first, last):
        made = grouped(self.bookings, "booking_date")
        days = [first + DAY * n for n in range((last - first).days + 1)]
        return [
            {
                "booking_date": day,
                "weekday_name": WEEKDAYS[day.weekday()],
                "bookings": len(rows := made.get((day,), [])),
                "sold": sum(b["sold"] for b in rows),
                "cancelled": sum(b["cancelled"] for b in rows),
                "guests": people([b for b in rows if b["sold"]]),
                "sold_without_guests": sum(b["guests"] is None for b in rows if b["sold"]),
                "is_complete": all(channel.knows(day) for channel in self.channels),
            }
            for day in days
        ]

    def _known_from(self, bookings):
        (channel,) = [c for c in self.channels if c.connection == bookings[0]["connection"]]
        return channel.known_from(channel.pulled)

    def q2(self, first, last):
        return [
            {
                "currency": currency,
                "product_name": product,
                "channel_name": channel,
                "bookings": len(rows),
                "guests": sum(b["guests"] for b in rows),
                "retail_amount": total(rows, "retail"),
                "net_amount": total(rows, "net"),
                "without_net": sum(b["net"] is None for b in rows),
                "known_from": self._known_from(rows),
            }
            for (currency, product, channel), rows in grouped(
                self.sold(first, last), "currency", "product_name", "channel_name"
            ).items()
        ]

    def _days(self, first, last):
        ahead = [d for d in self.departures if d["followed"] and first <= d["travel_date"] <= last]
        return grouped(ahead, "product", "product_name", "travel_date").items()

    def q3(self, first, last):
        answer = []
        for (_, name, day), rows in self._days(first, last):
            measured = [d for d in rows if d["taken"] is not None]
            answer.append(
                {
                    "product_name": name,
                    "travel_date": day,
                    "weekday_name": WEEKDAYS[day.weekday()],
                    "departures": len(rows),
                    "closed_departures": sum(d["closed"] for d in rows),
                    "taken": total(measured, "taken"),
                    "capacity": total(measured, "capacity"),
                    "fill_rate": share(total(measured, "taken"), total(measured, "capacity")),
                }
            )
        return answer

    def q4(self, first, last, below):
        return [
            {
                "product_name": d["product_name"],
                "option_name": d["option_name"],
                "local_start_at": d["start"],
                "taken": d["taken"],
                "capacity": d["capacity"],
                "fill_rate": d["rate"],
                "our_guests": d["our_guests"],
                "is_all_day": d["whole_day"],
            }
            for d in self.departures
            if d["followed"] and first <= d["travel_date"] <= last and not d["sold_out"]
            if d["rate"] is not None and d["rate"] < below
        ]

    def q5(self, first, last):
        made = [b for b in self.bookings if b["was_sold"] and first <= b["booking_date"] <= last]
        months = grouped([b | {"month": month_of(b["booking_date"])} for b in made], "channel_name", "month")
        return [
            {
                "channel_name": channel,
                "booking_month": month,
                "was_sold": len(rows),
                "cancelled": sum(b["cancelled"] for b in rows),
                "cancellation_rate": sum(b["cancelled"] for b in rows) / len(rows),
            }
            for (channel, month), rows in months.items()
        ]

    def q6(self, first, last):
        made = [b for b in self.sold(first, last, "booking_date") if b["lead"] is not None]
        return [
            {
                "channel_name": channel,
                "bookings": len(rows),
                "median_lead_days": float(median(b["lead"] for b in rows)),
                "shortest": min(b["lead"] for b in rows),
                "longest": max(b["lead"] for b in rows),
            }
            for (channel,), rows in grouped(made, "channel_name").items()
        ]

    def q7(self, first, last, today):
        travelled = [
            b | {"month": month}
            for b in self.bookings
            if b["was_sold"] and b["travel_date"] is not None
            for month in [month_of(b["travel_date"])]
            if month_of(first) <= month <= last and month < month_of(today[b["connection"]])
        ]
        answer = []
        for (_, product, month), rows in grouped(travelled, "seller", "product_name", "month").items():
            channels = grouped(rows, "connection")

            def guests(days, channels=channels):
                """Of all channels; None where one of them has bookings and none of these says how many."""
                each = [
                    people([b for b in same if b["sold"] and (days is None or b["lead"] >= days)])
                    for same in channels.values()
                ]
                return None if None in each else sum(each)

            row = {"product_name": product, "travel_month": month, "final_guests": guests(None)}
            row["is_complete"] = all(c.knows_month(month) for c in self.channels if (c.connection,) in channels)
            row["bookings_without_guests"] = sum(
                b["guests"] is None for b in rows if not b["cancelled"] or b["notice"] is not None
            )
            for days in (30, 14, 7):
                early = guests(days)
                row |= {f"guests_{days}_days_out": early, f"share_{days}": share(early, row["final_guests"])}
            answer.append(row)
        return answer

    def q8(self, first, last):
        return [
            {
                "product_name": name,
                "travel_date": day,
                "state": "closed" if all(d["closed"] for d in rows) else "sold out",
                "departures": len(rows),
                "sold_out_departures": sum(d["sold_out"] for d in rows),
                "closed_departures": sum(d["closed"] for d in rows),
                "our_guests": None if any(d["our_guests"] is None for d in rows) else total(rows, "our_guests"),
            }
            for (_, name, day), rows in self._days(first, last)
            if all(d["closed"] or d["sold_out"] for d in rows)
        ]

    def q9(self, first, last):
        answer = []
        for (_, product), rows in grouped(self.sold(first, last), "seller", "product_name").items():
            missed = [b for b in rows if not b["redeemed"]]
            counted = len(missed) < len(rows) or any(b["status"] == "NOSHOW" for b in missed)
            answer.append(
                {
                    "product_name": product,
                    "sold": len(rows),
                    "redeemed": len(rows) - len(missed),
                    "not_redeemed": len(missed),
                    "guests_not_redeemed": total(missed, "guests"),
                    "no_show_rate": len(missed) / len(rows) if counted else None,
                }
            )
        return answer

    def q10(self, day):
        answer = []
        for b in self.sold(day, day):
            names = Counter(t["unit_name"] for t in self.tickets if t["booking"] is b)
            answer.append(
                {
                    "local_start_at": b["start"],
                    "product_name": b["product_name"],
                    "option_name": b["option_name"],
                    "supplier_reference": b["raw"]["supplier_reference"],
                    "reseller_reference": b["raw"]["reseller_reference"],
                    "booking_uuid": b["booking_uuid"],
                    "channel_name": b["channel_name"],
                    "status": b["status"],
                    "guests": b["guests"],
                    "tickets": ", ".join(f"{count} {name}" for name, count in sorted(names.items())),
                    "is_all_day": b["whole_day"],
                }
            )
        return answer

    def q11(self, first, last):
        return [
            {
                "channel_name": channel,
                "supplier_name": rows[0]["supplier_name"],
                "currency": currency,
                "bookings": len(rows),
                "known_from": self._known_from(rows),
                "without_net": sum(b["net"] is None for b in rows),
                "net_amount": total(rows, "net"),
                "retail_amount": total(rows, "retail"),
            }
            for (channel, currency), rows in grouped(self.sold(first, last), "channel_name", "currency").items()
        ]

    def q16(self, first, last):
        rows = [
            b | {"day": b["start"].isoweekday(), "hour": None if b["whole_day"] else b["start"].hour}
            for b in self.sold(first, last)
        ]
        return [
            {
                "weekday": day,
                "weekday_name": WEEKDAYS[day - 1],
                "start_hour": hour,
                "currency": currency,
                "bookings": len(same),
                "guests": sum(b["guests"] for b in same),
                "retail_amount": total(same, "retail"),
            }
            for (day, hour, currency), same in grouped(rows, "day", "hour", "currency").items()
        ]

    def q17(self, first, last):
        chosen = {id(b) for b in self.sold(first, last)}
        rows = [
            t | {"seller": t["booking"]["seller"], "product_name": t["booking"]["product_name"]}
            for t in self.tickets
            if id(t["booking"]) in chosen
        ]
        return [
            {
                "product_name": product,
                "unit_type": unit,
                "tickets": len(same),
                "guests": total(same, "guests"),
                "tickets_without_guests": sum(t["guests"] is None for t in same),
            }
            for (_, product, unit), same in grouped(rows, "seller", "product_name", "unit_type").items()
        ]

    def q18(self, first, last):
        answer = []
        for (channel,), rows in grouped(self.sold(first, last), "channel_name").items():
            counted = [b["guests"] for b in rows if b["guests"] is not None]
            answer.append(
                {
                    "channel_name": channel,
                    "bookings": len(counted),
                    "guests": sum(counted) if counted else None,
                    "party_size": share(sum(counted), len(counted)),
                    "bookings_without_guests": len(rows) - len(counted),
                }
            )
        return answer

    def q19(self, first, last):
        lapsed = [b for b in self.bookings if b["status"] == "EXPIRED" and first <= b["booking_date"] <= last]
        return [
            {
                "channel_name": channel,
                "product_name": product,
                "currency": currency,
                "holds": len(rows),
                "guests": total(rows, "guests"),
                "retail_amount": total(rows, "retail"),
                "last_expired_at_utc": max(instant(b["raw"]["utc_expires_at"]) for b in rows),
            }
            for (channel, product, currency), rows in grouped(
                lapsed, "channel_name", "product_name", "currency"
            ).items()
        ]

    def q21(self, after, last, above):
        return [
            {
                "product_name": d["product_name"],
                "option_name": d["option_name"],
                "local_start_at": d["start"],
                "utc_start_at": d["utc_start"],
                "vacancies": d["vacancies"],
                "capacity": d["capacity"],
                "fill_rate": d["rate"],
                "is_sold_out": d["sold_out"],
                "our_guests": d["our_guests"],
                "is_all_day": d["whole_day"],
            }
            for d in self.departures
            if d["followed"] and d["utc_start"] > after and d["travel_date"] <= last
            if d["rate"] is not None and d["rate"] > above
        ]


TOLD = {
    "status": "status", "local_date": "travel_date", "retail_amount": "retail", "net_amount": "net", "pax_count": "guests",
    "currency": "currency", "product_id": "product_name", "option_id": "option_name",
}  # fmt: skip
"""What a version of a booking holds, and what it is called here."""


def booking_changes(before, now, pulled):
    """Question 12, from the state at the first pull and now: bookings that were made since, or differ."""
    old = {b["booking_uuid"]: b for b in before.bookings}
    answer = []
    for b in now.bookings:
        was = old.get(b["booking_uuid"])
        changed = sorted(name for name, called in TOLD.items() if was and was[called] != b[called])
        times = [b["raw"][name] for name in ("utc_created_at", "utc_cancelled_at") if b["raw"][name]]
        if not changed and (was or max(map(instant, times)) < pulled):
            continue
        answer.append(
            {
                "channel_name": b["channel_name"],
                "product_name": b["product_name"],
                "booking_uuid": b["booking_uuid"],
                "supplier_reference": b["raw"]["supplier_reference"],
                "version_no": 2 if was else 1,
                "previous_status": was["status"] if was else None,
                "status": b["status"],
                "changed_fields": ",".join(changed),
                "source": "schedule",
            }
        )
    return answer


def booking_events(before, now):
    """What the events say of travel, sale and departure: bookings as they were before, where they differ, and as they are."""
    old = {b["booking_uuid"]: b for b in before.bookings}
    answer = []
    for b in now.bookings:
        was = old.get(b["booking_uuid"])
        differs = was and any(was[called] != b[called] for called in TOLD.values())
        for number, version in enumerate([was, b] if differs else [b], 1):
            same_departure = version["slot"][:3] == b["slot"][:3] and version["travel_date"] == b["travel_date"]
            answer.append(
                {
                    "booking_uuid": b["booking_uuid"],
                    "version_no": number,
                    "travel_date": version["travel_date"],
                    "travel_month": version["travel_date"] and month_of(version["travel_date"]),
                    "is_sold": version["sold"],
                    "booking_date": b["booking_date"],
                    "departure_key": "|".join(b["slot"]) if same_departure and b["slot"][3] else None,
                }
            )
    return answer


def availability_changes(before, now):
    """Question 20: departures whose status, places or capacity differ from what they were."""
    told = ("status", "available", "vacancies", "capacity")
    old = {d["slot"]: d for d in before.departures}
    return [
        {
            "product_name": d["product_name"],
            "option_name": d["option_name"],
            "local_start_at": d["start"],
            "status_before": was["status"],
            "status": d["status"],
            "vacancies_before": was["vacancies"],
            "vacancies": d["vacancies"],
            "capacity_before": was["capacity"],
            "capacity": d["capacity"],
            "is_all_day": d["whole_day"],
        }
        for d in now.departures
        if (was := old.get(d["slot"])) and any(was[name] != d[name] for name in told)
    ]


def price_changes(before, now):
    """Question 22: units and options whose price differs from what it was."""
    answer = []
    channels = grouped([{"seller": c.seller, "name": c.name} for c in now.channels], "seller")
    for (seller, product_id), product in now.products.items():
        scale = -product["currency_precision"]
        for option in product["options"]:
            old = before.options[seller, product_id, option["id"]]
            old_units = {unit["id"]: unit for unit in old["units"]}
            pairs = [("", old["price_from"], option["price_from"])]
            pairs += [(u["title"]["en"], old_units[u["id"]]["price_from"], u["price_from"]) for u in option["units"]]
            for name, was, price in pairs:
                if price is not None and any(was[part] != price[part] for part in ("original", "retail", "net")):
                    answer += [
                        {
                            "product_name": product["title"]["en"],
                            "option_name": option["title"]["en"],
                            "channel_name": channel["name"],
                            "unit_name": name,
                            "currency": product["default_currency"],
                            "retail_before": Decimal(was["retail"]).scaleb(scale),
                            "retail_amount": Decimal(price["retail"]).scaleb(scale),
                            "retail_change": Decimal(price["retail"] - was["retail"]).scaleb(scale),
                            "net_before": None if was["net"] is None else Decimal(was["net"]).scaleb(scale),
                            "net_amount": None if price["net"] is None else Decimal(price["net"]).scaleb(scale),
                        }
                        for channel in channels[seller,]
                    ]
    return answer


def recon_open(results, runs):
    """What is open and nobody lets be, with its age; `results` and `runs` are rows of `ops` as dictionaries."""
    last = {}
    for run in runs:
        if run["verdict"] != "failed":
            last[run["recon_name"]] = max(run["ended_at_utc"], last.get(run["recon_name"], run["ended_at_utc"]))
    answer = []
    for row in results:
        seen = row["last_seen_at_utc"].date()
        in_force = row["accepted_note"] is not None and (row["accepted_until"] is None or row["accepted_until"] >= seen)
        if row["resolved_at_utc"] is not None or in_force:
            continue
        days = (seen - row["first_seen_at_utc"].date()).days
        classes = [name for most, name in ((1, "0-1"), (7, "2-7"), (30, "8-30")) if days <= most]
        answer.append(
            {k: v for k, v in row.items() if not k.startswith(("accepted_", "resolved_"))}
            | {
                "is_new": last.get(row["recon_name"]) == row["first_seen_at_utc"],
                "age_days": days,
                "age_class": classes[0] if classes else ">30",
            }
        )
    return answer
