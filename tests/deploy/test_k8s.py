"""`deploy k8s`: manifests that fit Kubernetes' schema, and what makes them safe."""

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
