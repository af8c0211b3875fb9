"""`deploy k8s`: manifests that fit Kubernetes' schema, and what makes them safe."""

from pathlib import Path

import pytest
import yaml
from tests.deploy.conftest import PIPELINE, judged, run, tool


def documents(files):
    return {each["kind"]: each for text in files.values() for each in yaml.safe_load_all(text) if each}


def containers(files):
    found = documents(files)
    return [
        found["Deployment"]["spec"]["template"]["spec"],
        found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    ]


ROOT = Path(__file__).resolve().parents[2]
SEVERAL = f'journal = "postgresql://octo@db.example/octo"\n{PIPELINE}'


def scaling(files):
    """The autoscaler, which is printed as a comment."""
    return (
        files["serve.yaml"]
        .partition("# # More workers")[2]
        .partition(").\n")[2]
        .partition("# ---")[0]
        .replace("# ", "")
    )


def test_what_several_machines_need_fits_the_schema_of_kubernetes_too(deploy):
    program = tool("kubernetes-validate")
    deploy.pipeline(SEVERAL)
    files, folder = deploy.files("k8s")
    (folder / "scaler.yaml").write_text(scaling(files))

    said = judged(program, "--strict", *(folder / name for name in (*files, "scaler.yaml")))

    for kind in ("deployment", "horizontalpodautoscaler"):
        assert f"passed for resource {kind}/octo-sync-worker" in said


def test_they_fit_the_schema_of_kubernetes(deploy):
    """`kubernetes-validate` brings the schemas; it is no dependency, because they are 72 MB."""
    program = tool("kubernetes-validate")
    files, folder = deploy.files("k8s")

    said = judged(program, "--strict", *(folder / name for name in files))

    for kind in ("configmap", "persistentvolumeclaim", "deployment", "service", "cronjob"):
        assert f"passed for resource {kind}/octo-sync" in said
    wrong = folder / "wrong.yaml"
    wrong.write_text((folder / "serve.yaml").read_text().replace("replicas: 1", "replica: 1"))
    assert run(program, "--strict", wrong).returncode != 0


def test_there_is_one_writer_and_nobody_is_root(deploy):
    files, _ = deploy.files("k8s")
    found = documents(files)

    assert set(found) == {"ConfigMap", "PersistentVolumeClaim", "Deployment", "Service", "CronJob"}
    assert (found["Deployment"]["spec"]["replicas"], found["Deployment"]["spec"]["strategy"]) == (
        1,
        {"type": "Recreate"},
    )
    assert found["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"
    for pod in containers(files):
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert pod["terminationGracePeriodSeconds"] == 10


def test_with_both_databases_in_postgresql_receivers_and_workers_are_several(deploy):
    deploy.pipeline(SEVERAL)
    files, _ = deploy.files("k8s")
    found = {
        each["metadata"]["name"]: each["spec"]
        for each in yaml.safe_load_all(files["serve.yaml"])
        if each["kind"] == "Deployment"
    }

    assert "PersistentVolumeClaim" not in documents(files)
    assert {name: spec["replicas"] for name, spec in found.items()} == {"octo-sync": 2, "octo-sync-worker": 2}
    for name, only in (
        ("octo-sync", ["receiver", "--only", "dashboard"]),
        ("octo-sync-worker", ["worker", "--only", "receiver"]),
    ):
        assert "strategy" not in found[name]  # a new one comes before a former one goes
        pod = found[name]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["args"][4:] == ["--only", *only, "--bind", "0.0.0.0:9797"]
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
        paused = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        assert (paused, pod["terminationGracePeriodSeconds"]) == (
            (["sleep", "5"], 15) if name == "octo-sync" else (None, 10)
        )
        assert {"name": "data", "emptyDir": {}} in pod["volumes"]
        assert found[name]["selector"]["matchLabels"] == found[name]["template"]["metadata"]["labels"]
    scaler = yaml.safe_load(scaling(files))
    assert scaler["spec"]["scaleTargetRef"]["name"] == "octo-sync-worker"
    metric = scaler["spec"]["metrics"][0]["external"]["metric"]["name"]
    assert f"`{metric}` | gauge" in (ROOT / "docs" / "metrics.md").read_text()


def test_health_is_asked_of_the_receiver(deploy):
    (container,) = containers(deploy.files("k8s")[0])[0]["containers"]

    paths = {
        probe: container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert container["ports"] == [{"name": "http", "containerPort": 9797}]
    assert container["args"][-2:] == ["--bind", "0.0.0.0:9797"]


def test_the_schedule_and_the_secrets_are_those_of_the_pipeline(deploy):
    files, _ = deploy.files("k8s")
    found = documents(files)

    assert (found["CronJob"]["spec"]["schedule"], found["CronJob"]["spec"]["timeZone"]) == (
        "30 2 * * mon",
        "Europe/Lisbon",
    )
    for pod in containers(files):
        assert pod["containers"][0]["env"] == [
            {"name": "OCTO_SYNC_CONNECTIONS__ACME__TOKEN__FILE", "value": "/run/secrets/octo-sync/acme-token"},
            {"name": "CREDENTIALS_DIRECTORY", "value": "/run/secrets/octo-sync"},
            {
                "name": "WAREHOUSE_PASSWORD",
                "valueFrom": {"secretKeyRef": {"name": "octo-sync", "key": "WAREHOUSE_PASSWORD"}},
            },
        ]


@pytest.mark.parametrize("more", ["", '# {{ x }} ${y} $(z) "q" \' \\ # :\n', "# 🎫\n", "# \u2028 \u0085\n"])
def test_the_pipeline_file_is_in_the_config_map_letter_for_letter(deploy, more):
    deploy.pipeline(more + PIPELINE)

    data = documents(deploy.files("k8s")[0])["ConfigMap"]["data"]

    assert data["acme.toml"].rstrip("\n") == (more + PIPELINE).rstrip("\n")
