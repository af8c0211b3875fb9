"""An assistant's own client library asks the read copy through the real program."""

import json
import signal
import subprocess
from contextlib import asynccontextmanager

import pytest
from tests.cli.conftest import CLEAN

REFUSED = (
    "delete from core.bookings",
    "create table mine as select 1",
    "select 1; select 2",
    "select * from read_csv('/etc/passwd')",
    "attach 'octo.duckdb' as w",
    "copy (select 1) to 'out.csv'",
    "select * from private.booking_contacts",
)


@asynccontextmanager
async def asking(program):
    # Not at the top: every process of tests collects this module, and their library takes a second or two to load.
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command, *words = program.arguments("mcp")
    parameters = StdioServerParameters(command=command, args=words, env=CLEAN, cwd=program.directory)
    async with Client(stdio_client(parameters)) as client:

        async def ask(tool, **arguments):
            found = await client.call_tool(tool, arguments)
            text = "\n".join(block.text for block in found.content)
            return text if found.is_error else json.loads(text)

        yield client, ask


async def test_an_assistant_finds_its_way_and_gets_what_a_person_gets(looked):
    query = "select travel_month, currency, sum(retail_amount) as sold from fct_bookings group by all order by all"
    async with asking(looked) as (client, ask):
        tools = (await client.list_tools()).tools
        assert {tool.name: tool.annotations.read_only_hint for tool in tools} == dict.fromkeys(
            ("list_tables", "describe_table", "list_questions", "ask_question", "run_sql"), True
        )
        tables = {table["full_name"]: table["description"] for table in await ask("list_tables")}
        assert "marts.fct_bookings" in tables
        assert not {name for name in tables if name.startswith(("private.", "raw."))}
        described = await ask("describe_table", name="fct_bookings")
        assert {"name", "type", "description"} == described["columns"][0].keys()

        rows = await ask("run_sql", query=query)
        assert rows["rows"]
        assert [dict(zip(rows["columns"], row, strict=True)) for row in rows["rows"]] == looked.json("sql", query)[
            "rows"
        ]

        question = next(each for each in await ask("list_questions") if each["name"] == "party_size")
        answer = await ask("ask_question", question=str(question["number"]), parameters={"first": "today-60d"})
        asked = looked.json("ask", "party_size", "--param", "first=today-60d")
        assert [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]] == asked["rows"]
        assert (await ask("run_sql", query="from core.bookings", limit=3))["truncated"]


async def test_what_is_more_than_reading_the_copy_is_refused_and_mistakes_are_sentences(looked):
    async with asking(looked) as (_, ask):
        for query in REFUSED:
            assert isinstance(await ask("run_sql", query=query), str), query
        assert not (looked.directory / "out.csv").exists()
        assert "has no table 'nope'; list_tables has them." in await ask("describe_table", name="nope")
        assert "There is no such question; list_questions has them." in await ask("ask_question", question="nope")
        assert (await ask("run_sql", query="select 1 as one"))["rows"] == [[1]], "it goes on"


@pytest.mark.deep(4)
async def test_each_call_sees_what_was_published_last(fresh):
    async with asking(fresh) as (_, ask):
        assert "does not exist yet" in await ask("run_sql", query="select 1")
        fresh.ok("sync")
        assert (await ask("run_sql", query="select count(*) > 0 from core.bookings"))["rows"] == [[True]]


@pytest.mark.deep(15)
async def test_an_answer_that_is_too_long_is_cut_or_refused_in_a_sentence(looked):
    async with asking(looked) as (_, ask):
        found = await ask("run_sql", query="select range from range(20000)", limit=10**30)
        assert (len(found["rows"]), found["truncated"]) == (10_000, True)
        for query in (
            "select repeat('x', 1000000) from range(9000)",
            "select list(range) from range(400000000)",
        ):
            said = await ask("run_sql", query=query, limit=9_000)
            assert "memory" in said or "The answer has" in said, said
        assert "The answer has" in await ask("run_sql", query="select repeat('x', 3000) from range(1000)", limit=1000)
        assert (await ask("run_sql", query="select 1"))["rows"] == [[1]]


def test_ctrl_c_ends_it_while_it_waits_for_the_assistant(looked):
    with subprocess.Popen(
        looked.arguments("mcp"), cwd=looked.directory, env=CLEAN, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        said = process.stderr.read()
        assert "Traceback" not in said
        assert said.splitlines()[-1] == "octo-sync: interrupted; nothing was changed"
