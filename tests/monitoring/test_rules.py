"""The dashboard and the alert rules name only metrics that there are, with labels that they have."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml
from scripts import metrics as page
from tests.absent import absent

from octo_sync.cli import root
from octo_sync.receiver.metrics import _READ, CATALOGUE

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
SHOWN = {each.shown: each for each in CATALOGUE.values()} | {
    f"{each.name}_{part}": each
    for each in CATALOGUE.values()
    if each.kind == "histogram"
    for part in ("bucket", "sum", "count")
}
ALWAYS = {"job", "instance", "le"}
"""Labels that Prometheus adds, and that of a histogram."""
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]


def wrong(expression: str) -> list[str]:
    """What a query names that there is not."""
    found = []
    for name, labels in re.findall(r"\b(octo_sync_\w+)(?:\{([^}]*)\})?", expression):
        if name not in SHOWN:
            found.append(name)
            continue
        named = set(re.findall(r"(\w+)\s*[=!]~?", labels or ""))
        found += [f"{name}{{{label}}}" for label in named - ALWAYS - set(SHOWN[name].labels)]
    grouped = {label.strip() for part in re.findall(r"\bby \(([^)]*)\)", expression) for label in part.split(",")}
    known = {
        label for name in re.findall(r"\bocto_sync_\w+", expression) if name in SHOWN for label in SHOWN[name].labels
    }
    return found + [f"by ({label})" for label in grouped - ALWAYS - known]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_asks_for_metrics_that_there_are(panel):
    assert panel["description"]
    for target in panel["targets"]:
        assert "octo_sync_" in target["expr"]
        assert wrong(target["expr"]) == []


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_asks_for_metrics_that_there_are_and_says_what_to_do(rule):
    assert wrong(rule["expr"]) == []
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"].keys() == {"summary", "description"}
    labels = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    grouped = {label.strip() for part in re.findall(r"\bby \(([^)]*)\)", rule["expr"]) for label in part.split(",")}
    assert labels <= grouped | {"instance"}, "an alert can name only what its query keeps"


def test_a_query_for_what_there_is_not_is_found():
    assert wrong("rate(octo_sync_requests[5m])") == ["octo_sync_requests"]
    assert wrong('octo_sync_requests_total{kind="x"}') == ["octo_sync_requests_total{kind}"]
    assert wrong("max by (bucket) (octo_sync_lag_seconds)") == ["by (bucket)"]
    assert wrong('histogram_quantile(0.5, sum by (le) (octo_sync_acknowledge_seconds_bucket{job="a"}))') == []


OF_THE_JOURNAL = {each.shown for each in _READ if each.name != "octo_sync_requests"}
"""What each receiver tells of the whole project, so that the sum over several receivers is a multiple of it."""


def test_what_each_of_several_receivers_tells_of_the_project_is_never_added_up():
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]] + [rule["expr"] for rule in ALERTS]
    added = [
        q
        for q in queries
        for name in re.findall(r"sum[^(]*(?:\([^)]*\) )?\((?:\w+\()?(octo_sync_\w+)", q)
        if name in OF_THE_JOURNAL
    ]
    assert added == []
    assert OF_THE_JOURNAL & set(re.findall(r"octo_sync_\w+", str(queries)))


def test_every_metric_is_on_the_dashboard():
    asked = {
        SHOWN[name].name
        for panel in PANELS
        for t in panel["targets"]
        for name in re.findall(r"\bocto_sync_\w+", t["expr"])
    }

    assert asked == set(CATALOGUE)


def test_what_must_wake_somebody_has_an_alert():
    text = " ".join(rule["expr"] for rule in ALERTS)

    for name in (
        "staleness_seconds",
        "quarantine_entries",
        "subscription_held",
        "lag_seconds",
        "deliveries_total",
        "webhook_silence",
    ):
        assert f"octo_sync_{name}" in text


def test_the_dashboard_can_be_imported():
    assert DASHBOARD["schemaVersion"] >= 36
    (source,) = DASHBOARD["__inputs"]
    assert (source["type"], source["pluginId"]) == ("datasource", "prometheus")
    uid = f"${{{source['name']}}}"
    places = [*PANELS, *(t for panel in PANELS for t in panel["targets"]), *DASHBOARD["templating"]["list"]]
    assert {place["datasource"]["uid"] for place in places} == {uid}
    assert DASHBOARD["id"] is None
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_no_panel_covers_another():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_prometheus_itself_takes_the_rules():
    tool = shutil.which("promtool")
    if tool is None:
        absent("promtool is not here (Debian: apt-get install prometheus)")
    done = subprocess.run([tool, "check", "rules", DEPLOY / "alerts.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_metrics_is_current():
    assert page.PAGE.read_text(encoding="utf-8") == page.render(), (
        "docs/metrics.md is not current; run: scripts/write.sh"
    )


def test_names_are_those_that_prometheus_wants():
    for each in CATALOGUE.values():
        assert re.fullmatch(r"octo_sync_[a-z_]+[a-z]", each.name)
        assert each.meaning.endswith(".")
        assert not each.name.endswith("_total")


def test_the_rules_name_their_own_file_and_commands_that_there_are():
    text = (DEPLOY / "alerts.yml").read_text(encoding="utf-8")
    assert "rule_files: [alerts.yml]" in text.splitlines()[0]
    told = " ".join(rule["annotations"]["description"] for rule in ALERTS)
    for name, options in re.findall(r"octo-sync ([a-z]+)((?: --[a-z-]+)*)", told):
        command = root.get_command(click.Context(root), name)
        assert command is not None, name
        assert set(options.split()) <= {option for parameter in command.params for option in parameter.opts}, name
