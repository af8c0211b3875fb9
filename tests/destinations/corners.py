"""Answers that speak for less than they bring, or come back where nobody looks; for every destination."""

import dataclasses
import json

from tests.destinations import contract
from tests.destinations.contract import (
    NOW,
    answered,
    booking,
    december,
    departures,
    in_month,
    landing,
    one,
    product,
    slot,
)

from octo_sync.destinations.base import Shown


def in_two_languages(first, second, seq, *, flags=None, other_flags=None):
    """The list of products in English, and the same in German; the second decides about no product."""
    lists = answered("products", first, seq, flags=flags)
    other = answered("products", second, seq, language="de", flags=other_flags)
    lines = tuple(json.dumps({**json.loads(line), "is_primary": False}).encode() for line in other.lines)
    ids = tuple(dict.fromkeys(record["id"] for record in (*first, *second)))
    return dataclasses.replace(lists, lines=lists.lines + lines, shown=(Shown((seq,), ids),))


TEXTS = "select product_id, option_id, language, title from core.product_content where not is_deleted order by 1, 2, 3"


class Corners:
    """Any warehouse passes this, too."""

    def test_a_text_that_only_the_second_language_brings_stays_one_row(self, warehouse):
        english, german = [product(1), product(2)], [product(1, title="Bahn"), product(2, title="Bahn")]
        warehouse.land(landing(in_two_languages(english, german, 1)))
        newer = [product(1, title="Bahn"), product(2, title="Neu")]
        warehouse.land(landing(in_two_languages([product(1)], newer, 2), minutes=1))
        texts = warehouse.query(TEXTS).rows
        assert len({row[:3] for row in texts}) == len(texts) == 8
        assert ("p2", "", "de", "Neu") in texts

    def test_texts_come_once_where_only_the_second_language_has_the_capability(self, warehouse):
        english, german = [product(1)], [product(1, title="Bahn")]
        warehouse.land(landing(in_two_languages(english, german, 1)))
        newer = in_two_languages(english, [product(1, title="Neu")], 2, flags={"has_content": False})
        warehouse.land(landing(newer, minutes=1))
        assert warehouse.query(TEXTS).rows == [
            ("p", "", "de", "Neu"),
            ("p", "", "en", "Tram"),
            ("p", "o", "de", "Neu"),
            ("p", "o", "en", "Tram"),
        ]

    def test_texts_of_a_language_stay_that_came_without_the_capability(self, warehouse):
        english, german = [product(1)], [product(1, title="Bahn")]
        warehouse.land(landing(in_two_languages(english, german, 1)))
        said = warehouse.query(TEXTS).rows
        lacking = in_two_languages([product(1, title="Tram 28")], german, 2, other_flags={"has_content": False})
        warehouse.land(landing(lacking, minutes=1))
        assert [row for row in warehouse.query(TEXTS).rows if row[2] == "de"] == [row for row in said if row[2] == "de"]
        warehouse.land(landing(answered("products", english, 3), minutes=2))
        assert {row[2] for row in warehouse.query(TEXTS).rows} == {"en"}, "a language that is asked for no more"

    def test_prices_of_no_unit_and_of_an_empty_one_are_one(self, warehouse):
        for seq in range(1, 4):
            prices = [{**slot(5)["unitPricing"][0], "unitId": unit, "retail": seq} for unit in (None, "")]
            warehouse.land(landing(departures([{**slot(5, vacancies=seq), "unitPricing": prices}], seq), minutes=seq))
            assert contract.live(warehouse, "core.availability_prices", "retail_minor") == [seq]

    def test_a_departure_that_was_gone_comes_back_on_another_day_as_one_row(self, warehouse, open_warehouse):
        """Also where no row is there but it, and another process is the next to land."""
        warehouse.land(landing(in_month(6, [slot(5, month=6)], 1)))
        for seq in (2, 3):
            warehouse.land(landing(in_month(6, [], seq), minutes=seq))
        warehouse.bury([a for a in warehouse.absences() if a.misses > 1], now=NOW, fence=1)
        warehouse.close()
        again = open_warehouse()
        again.claim_writer(2, "test")
        moved = {**slot(3, month=7), "id": slot(5, month=6)["id"]}
        again.land(landing(in_month(7, [moved], 10), minutes=9, run_id="the next", fence=2))
        rows = again.query("select local_date::text, is_deleted from core.availability").rows
        again.close()
        assert rows == [("2026-07-03", False)]

    def test_a_departure_that_moves_keeps_what_its_answer_has_no_more(self, warehouse):
        """As one that does not move: the value stays, and the row says so."""
        warehouse.land(landing(in_month(6, [slot(5, month=6), slot(6, month=6)], 1)))
        moved = {**slot(3, month=7), "id": slot(5, month=6)["id"], "capacity": None}
        capacity = slot(5)["capacity"]
        warehouse.land(landing(in_month(7, [moved], 10), minutes=1, run_id="the next"))
        told = "select capacity, stale_columns from core.availability where local_date = date '2026-07-03'"
        assert warehouse.query(told).rows == [(capacity, "capacity")]

    def test_a_doubtful_value_of_a_detail_is_decided_by_the_next_list(self, warehouse):
        """The list has the same bytes, and is read all the same."""
        first, other = booking(1), booking(2)
        warehouse.land(landing(december([first, other], 1)))
        poor = json.loads(json.dumps(first))
        poor["pricing"]["includedTaxes"][0]["retail"] = None
        warehouse.land(landing(one(poor, 2), minutes=1))
        taxes = "select retail_minor from core.booking_taxes order by booking_uuid"
        assert warehouse.query(taxes).rows == [(200,), (200,)], "its own answer says little about all of them"
        answer = december([poor, other], 3, known=warehouse.known_bookings("main", contract.DECEMBER))
        warehouse.land(landing(answer, minutes=2))
        assert warehouse.query(taxes).rows == [(None,), (200,)]
