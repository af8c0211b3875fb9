"""One load with dlt's rest_api source into DuckDB. Runs inside dlt's own environment; pull.py starts it.

`documented` is the dictionary that dlt's documentation shows: resources, endpoints, placeholders into a parent resource,
`write_disposition` and `primary_key`, everything else at its default.

`tuned` is the best we could make of the same source:

- explicit `columns` with types, so that nothing is inferred; the schema is frozen after the first load
- only the fields that octo-sync lands too: a processing step drops the hydrated product, option, unit and tickets
- child tables only for what octo-sync keeps as rows (prices, unit items, taxes); other lists stay JSON
- requests side by side (`parallelized`, workers), normalising in two processes, loading in parallel
- Parquet as the loader's file format, no row-by-row inserts
- progress, telemetry and tracing off
"""

import argparse
import calendar
import datetime as dt
import json
import os
import sys
from pathlib import Path
from zoneinfo import ZoneInfo


def months(first, last):
    while first <= last:
        end = first.replace(day=calendar.monthrange(first.year, first.month)[1])
        yield first, min(end, last)
        first = end + dt.timedelta(days=1)


TEXT, WHOLE, FLAG, DATE, TIME = (
    {"data_type": kind, "nullable": True} for kind in ("text", "bigint", "bool", "date", "timestamp")
)
JSON = {"data_type": "json", "nullable": True}


def price(prefix):
    parts = dict.fromkeys(("original", "retail", "net", "currency_precision"), WHOLE) | {"currency": TEXT}
    return {f"{prefix}{name}": kind for name, kind in parts.items()}


SLOT_FIELDS = (
    "id", "localDateTimeStart", "localDateTimeEnd", "utcCutoffAt", "allDay", "available", "status", "vacancies",
    "capacity", "maxUnits", "openingHours", "unitPricing", "pricing",
)  # fmt: skip
BOOKING_FIELDS = (
    "uuid", "id", "status", "testMode", "resellerReference", "supplierReference", "utcCreatedAt", "utcUpdatedAt",
    "utcExpiresAt", "utcRedeemedAt", "utcConfirmedAt", "productId", "optionId", "cancellable", "cancellation", "freesale",
    "availabilityId", "notes", "pricing", "contact",
)  # fmt: skip
SLOT_COLUMNS = {
    "id": TEXT, "local_date_time_start": TEXT, "local_date_time_end": TEXT, "utc_cutoff_at": TIME, "all_day": FLAG,
    "available": FLAG, "status": TEXT, "vacancies": WHOLE, "capacity": WHOLE, "max_units": WHOLE, "opening_hours": JSON,
    **price("pricing__"),
}  # fmt: skip
BOOKING_COLUMNS = {
    **dict.fromkeys(
        ("uuid", "id", "status", "reseller_reference", "supplier_reference", "product_id", "option_id", "availability_id",
         "notes", "time_zone", "local_date_time_start"),
        TEXT,
    ),
    **dict.fromkeys(("utc_created_at", "utc_updated_at", "utc_expires_at", "utc_redeemed_at", "utc_confirmed_at"), TIME),
    "test_mode": FLAG, "cancellable": FLAG, "freesale": FLAG,
    "extra_items": JSON, "contact": JSON, "cancellation": JSON,
    **price("pricing__"), "pricing__included_taxes": JSON,
}  # fmt: skip


def hints(columns):
    """Each its own dictionary: dlt writes the column's name into the hint it is given."""
    return {name: {"name": name, **hint} for name, hint in columns.items()}


def lean_slot(slot):
    kept = {name: slot.get(name) for name in SLOT_FIELDS}
    for one in [*(kept["unitPricing"] or ()), *([kept["pricing"]] if kept["pricing"] else ())]:
        one.pop("includedTaxes", None)
    return {**kept, **{name: value for name, value in slot.items() if name.startswith("_windows")}}


def lean_booking(booking):
    kept = {name: booking.get(name) for name in BOOKING_FIELDS}
    slot = booking.get("availability") or {}
    kept["timeZone"] = (booking.get("product") or {}).get("timeZone")
    kept["localDateTimeStart"] = slot.get("localDateTimeStart")
    kept["extraItems"] = booking.get("extraItems")
    kept["unitItems"] = [
        {
            "uuid": item["uuid"],
            "unitId": item["unitId"],
            "unitType": (item.get("unit") or {}).get("type"),
            "status": item["status"],
            "supplierReference": item.get("supplierReference"),
            "resellerReference": item.get("resellerReference"),
            "utcRedeemedAt": item.get("utcRedeemedAt"),
            "contact": json.dumps(item["contact"]) if item.get("contact") else None,
            "pricing": {k: v for k, v in (item.get("pricing") or {}).items() if k != "includedTaxes"},
        }
        for item in booking["unitItems"]
    ]
    return kept


def source_config(options, windows, booking_windows):
    tuned = options.mode == "tuned"
    headers = json.loads(os.environ["OCTO_BENCH_HEADERS"])
    merge = {"write_disposition": "merge"}
    availability = {
        "name": "availability",
        "primary_key": ["_windows_product_id", "_windows_option_id", "id"],
        "include_from_parent": ["product_id", "option_id"],
        "endpoint": {
            "path": "availability",
            "method": "POST",
            "json": {
                "productId": "{resources.windows.product_id}",
                "optionId": "{resources.windows.option_id}",
                "localDateStart": "{resources.windows.first}",
                "localDateEnd": "{resources.windows.last}",
            },
            "paginator": "single_page",
            "data_selector": "$",
        },
        **merge,
    }
    bookings = {
        "name": "bookings",
        "primary_key": "uuid",
        "endpoint": {
            "path": "bookings",
            "params": {
                "localDateStart": "{resources.booking_windows.first}",
                "localDateEnd": "{resources.booking_windows.last}",
            },
            "paginator": "single_page",
            "data_selector": "$",
        },
        **merge,
    }
    products = {
        "name": "products",
        "primary_key": "id",
        "endpoint": {"path": "products", "paginator": "single_page", "data_selector": "$"},
        **merge,
    }
    if tuned:
        products["max_table_nesting"] = 0
        availability |= {
            "columns": hints(SLOT_COLUMNS), "max_table_nesting": 1, "parallelized": True,
            "processing_steps": [{"map": lean_slot}],
        }  # fmt: skip
        bookings |= {
            "columns": hints(BOOKING_COLUMNS), "max_table_nesting": 2, "parallelized": True,
            "processing_steps": [{"map": lean_booking}],
        }  # fmt: skip
    return {
        "client": {"base_url": options.base.rstrip("/") + "/", "headers": headers},
        "resources": [windows, booking_windows, products, availability, bookings],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("--mode", choices=["tuned", "documented"], required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--today", type=dt.date.fromisoformat, required=True)
    parser.add_argument("--before", type=int, required=True)
    parser.add_argument("--after", type=int, required=True)
    options = parser.parse_args()
    settings = {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "ERROR",
        "DLT_DATA_DIR": str(options.directory / "dlt"),
        "DLT_PROJECT_DIR": str(options.directory),
    }
    if options.mode == "tuned":
        settings |= {
            "EXTRACT__WORKERS": "6",
            "EXTRACT__MAX_PARALLEL_ITEMS": "12",
            "NORMALIZE__WORKERS": "2",
            "NORMALIZE__START_METHOD": "fork",
            "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "100000",
            "SOURCES__DATA_WRITER__FILE_MAX_ITEMS": "25000",
            "SOURCES__DATA_WRITER__BUFFER_MAX_ITEMS": "20000",
            "NORMALIZE__DATA_WRITER__BUFFER_MAX_ITEMS": "20000",
            "DATA_WRITER__DISABLE_COMPRESSION": "true",
            "NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION": "true",
            "SOURCES__DATA_WRITER__DISABLE_COMPRESSION": "true",
            "LOAD__WORKERS": "2",
            "LOAD__DELETE_COMPLETED_JOBS": "true",
            "RUNTIME__REQUEST_MAX_ATTEMPTS": "1",
            "LOAD__RAISE_ON_FAILED_JOBS": "true",
        }
    os.environ.update(settings)

    import dlt  # noqa: PLC0415 - after its settings
    from dlt.sources.helpers import requests  # noqa: PLC0415
    from dlt.sources.rest_api import rest_api_source  # noqa: PLC0415

    last = options.today + dt.timedelta(days=options.after)

    @dlt.resource(selected=False)
    def windows():
        headers = json.loads(os.environ["OCTO_BENCH_HEADERS"])
        for product in requests.get(f"{options.base}/products", headers=headers).json():
            start = dt.datetime.now(ZoneInfo(product["timeZone"])).date()  # today at the venue
            for option in product["options"]:
                for first, end in months(start, start + dt.timedelta(days=options.after)):
                    window = {"first": first.isoformat(), "last": end.isoformat()}
                    yield [{"product_id": product["id"], "option_id": option["id"], **window}]

    @dlt.resource(selected=False)
    def booking_windows():
        for first, end in months(options.today - dt.timedelta(days=options.before), last):
            yield [{"first": first.isoformat(), "last": end.isoformat()}]

    pipeline = dlt.pipeline(
        pipeline_name="octo",
        destination=dlt.destinations.duckdb(str(options.directory / "octo.duckdb")),
        dataset_name="copy",
    )
    source = rest_api_source(source_config(options, windows, booking_windows), name="octo")
    extra = {"loader_file_format": "parquet"} if options.mode == "tuned" else {}
    info = pipeline.run(source, **extra)
    info.raise_on_failed_jobs()
    if os.environ.get("OCTO_BENCH_TRACE"):
        print(pipeline.last_trace)
    return 0


if __name__ == "__main__":
    sys.exit(main())
