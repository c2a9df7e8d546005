#!/usr/bin/env python3
"""kubernetes.py - what must hold between the manifests of deploy/kubernetes, and in compose.yaml beside them.

    kubernetes.py DIRECTORY LEAVE-SECONDS     one line a fault; exit 1 with any
    kubernetes.py --self DIRECTORY LEAVE-SECONDS   each rule finds its fault in manifests that were made wrong

Beside Kubernetes' own schema, which a cluster checks, these are the rules that make a node work in one: what selects whom,
names of ports, the probes, the time to leave, who may be taken away, and no privileges.
"""
import copy
import glob
import os
import sys

import yaml

CHECK = {"startupProbe": "alive", "livenessProbe": "alive", "readinessProbe": "ready"}


def load(directory):
    """All objects by kind; a kind twice is a fault of the test."""
    objects = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.yaml"))):
        with open(path, encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                assert document["kind"] not in objects, path
                objects[document["kind"]] = document
    return objects


def selected(selector, labels):
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def faults_of_selectors(o):
    labels = o["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    for kind, selector in (
        ("Service", o["Service"]["spec"]["selector"]),
        ("StatefulSet", o["StatefulSet"]["spec"]["selector"]["matchLabels"]),
        ("PodDisruptionBudget", o["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]),
        ("NetworkPolicy", o["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]),
    ):
        if not selected(selector, labels):
            yield f"{kind}: {selector} does not select the pods, {labels}"
    for spread in o["StatefulSet"]["spec"]["template"]["spec"].get("topologySpreadConstraints", []):
        if not selected(spread["labelSelector"]["matchLabels"], labels):
            yield "topologySpreadConstraints do not select the pods"
    peers = [peer["podSelector"]["matchLabels"] for rule in o["NetworkPolicy"]["spec"]["ingress"] for peer in rule["from"]]
    if not any(selected(peer, labels) for peer in peers):
        yield "NetworkPolicy: nodes do not reach one another"


def faults_of_service(o):
    service, pods = o["Service"]["spec"], o["StatefulSet"]["spec"]
    if service.get("clusterIP") != "None":
        yield "Service: is not headless"
    if service.get("publishNotReadyAddresses") is not True:
        yield "Service: publishNotReadyAddresses is not true, so a node that is no member yet is not found"
    if pods["serviceName"] != o["Service"]["metadata"]["name"]:
        yield "StatefulSet: serviceName is no Service"
    container = pods["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for port in service["ports"]:
        if port["targetPort"] not in ports or ports[port["targetPort"]] != port["port"]:
            yield f"Service: port {port['name']} is none of the container's, {ports}"
    for rule in o["NetworkPolicy"]["spec"]["ingress"]:
        for port in rule["ports"]:
            if port["port"] not in ports:
                yield f"NetworkPolicy: port {port['port']} is none of the container's"
    if f"port = {ports.get('troupe')}" not in o["ConfigMap"]["data"]["troupe.conf"]:
        yield "ConfigMap: remote.port is not the container's"


def faults_of_probes(o):
    container = o["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    for probe, question in CHECK.items():
        command = container.get(probe, {}).get("exec", {}).get("command")
        if command != ["troupe", "check", question]:
            yield f"{probe}: {command} is not troupe check {question}"
    alive = container.get("livenessProbe", {})
    if alive.get("periodSeconds", 10) * alive.get("failureThreshold", 3) < 30:
        yield "livenessProbe: a node is killed sooner than management.alive-after (30 s) says that it is dead"


def faults_of_ends(o, leave):
    pods = o["StatefulSet"]["spec"]
    grace = pods["template"]["spec"].get("terminationGracePeriodSeconds", 30)
    if grace < leave + 15:
        yield f"StatefulSet: {grace} s to end, of which leaving may take {leave} and what follows 15"
    if f"leave-timeout = {leave}s" not in o["ConfigMap"]["data"]["troupe.conf"]:
        yield f"ConfigMap: cluster.leave-timeout is not {leave} s"
    budget = o["PodDisruptionBudget"]["spec"]
    if budget.get("maxUnavailable") != 1 or "minAvailable" in budget:
        yield "PodDisruptionBudget: not one node at a time"
    if pods.get("podManagementPolicy") != "OrderedReady":
        yield "StatefulSet: podManagementPolicy is not OrderedReady"
    if pods["replicas"] < 3:
        yield "StatefulSet: fewer than three nodes have no majority without one"


def faults_of_privileges(o):
    pod = o["StatefulSet"]["spec"]["template"]["spec"]
    security, container = pod.get("securityContext", {}), pod["containers"][0].get("securityContext", {})
    if security.get("runAsNonRoot") is not True or not security.get("runAsUser") or not security.get("runAsGroup"):
        yield "StatefulSet: runs as root, or as a user that Kubernetes cannot tell from root"
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "StatefulSet: no seccomp profile"
    if container.get("allowPrivilegeEscalation") is not False or container.get("capabilities", {}).get("drop") != ["ALL"]:
        yield "StatefulSet: has or may get privileges"
    if container.get("readOnlyRootFilesystem") is not True:
        yield "StatefulSet: its root can be written"
    if pod.get("automountServiceAccountToken") is not False:
        yield "StatefulSet: has a token for the API of Kubernetes"
    if pod.get("enableServiceLinks") is not False:
        yield "StatefulSet: enableServiceLinks is not false; a node refuses the TROUPE_ variables of services"


def faults_of_files(o):
    pod = o["StatefulSet"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    if set(volumes) != set(mounts):
        yield f"StatefulSet: volumes {sorted(volumes)}, mounts {sorted(mounts)}"
        return
    for name, volume in volumes.items():
        if "configMap" in volume and volume["configMap"]["name"] != o["ConfigMap"]["metadata"]["name"]:
            yield f"StatefulSet: volume {name} is no ConfigMap of ours"
        if "secret" in volume and volume["secret"].get("defaultMode", 0o644) & 0o007:
            yield f"StatefulSet: other users read the secret {name}, which a node refuses"
    env = {variable["name"] for variable in pod["containers"][0]["env"]}
    for name in ("POD_NAME", "POD_NAMESPACE"):
        if name not in env or "${" + name + "}" not in o["ConfigMap"]["data"]["troupe.conf"]:
            yield f"StatefulSet: {name} is not given, or not used by the configuration"


def faults(o, leave):
    for rule in (faults_of_selectors, faults_of_service, faults_of_probes, faults_of_privileges, faults_of_files):
        yield from rule(o)
    yield from faults_of_ends(o, leave)
    kinds = {name[:-5] for name in o["Kustomization"]["resources"]}
    if kinds != {kind.lower() for kind in o if kind != "Kustomization"}:
        yield f"Kustomization: {sorted(kinds)} are not the files that are there"


POD = ("StatefulSet", "spec", "template", "spec")
WRONG = [  # what to change, and to what; None: take it away
    (("Service", "spec", "selector"), {"app": "troupe"}),
    (("StatefulSet", "spec", "template", "metadata", "labels"), {"app": "troupe"}),
    (("PodDisruptionBudget", "spec", "selector", "matchLabels"), {"app": "troupe"}),
    (("NetworkPolicy", "spec", "podSelector", "matchLabels"), {}),
    (("NetworkPolicy", "spec", "ingress", 0, "from", 0, "podSelector", "matchLabels"), {"app": "x"}),
    (("Service", "spec", "publishNotReadyAddresses"), None),
    (("Service", "spec", "clusterIP"), None),
    (("Service", "spec", "ports", 0, "targetPort"), "other"),
    (("Service", "spec", "ports", 0, "port"), 2553),
    (("StatefulSet", "spec", "serviceName"), "other"),
    (POD + ("containers", 0, "ports", 0, "containerPort"), 2553),
    (POD + ("containers", 0, "livenessProbe"), None),
    (POD + ("containers", 0, "livenessProbe", "exec", "command"), ["troupe", "check", "ready"]),
    (POD + ("containers", 0, "livenessProbe", "failureThreshold"), 1),
    (POD + ("containers", 0, "readinessProbe", "exec", "command"), ["troupe", "status"]),
    (POD + ("containers", 0, "startupProbe"), None),
    (POD + ("terminationGracePeriodSeconds",), None),
    (POD + ("terminationGracePeriodSeconds",), 59),
    (("PodDisruptionBudget", "spec", "maxUnavailable"), 2),
    (("StatefulSet", "spec", "podManagementPolicy"), "Parallel"),
    (("StatefulSet", "spec", "replicas"), 2),
    (POD + ("securityContext", "runAsNonRoot"), None),
    (POD + ("securityContext", "runAsUser"), 0),
    (POD + ("securityContext", "seccompProfile"), None),
    (POD + ("containers", 0, "securityContext", "allowPrivilegeEscalation"), True),
    (POD + ("containers", 0, "securityContext", "capabilities", "drop"), []),
    (POD + ("containers", 0, "securityContext", "readOnlyRootFilesystem"), False),
    (POD + ("automountServiceAccountToken",), None),
    (POD + ("enableServiceLinks",), None),
    (POD + ("volumes", 1, "secret", "defaultMode"), 0o444),
    (POD + ("volumes", 0, "configMap", "name"), "other"),
    (POD + ("containers", 0, "volumeMounts", 2), {"name": "other", "mountPath": "/x"}),
    (POD + ("containers", 0, "env", 0, "name"), "OTHER"),
    (("ConfigMap", "data", "troupe.conf"), "remote { port = 2552 }"),
    (("Kustomization", "resources"), ["service.yaml"]),
]


def main(arguments):
    own_test = arguments[0] == "--self"
    directory, leave = arguments[-2], int(arguments[-1])
    objects = load(directory)
    found = list(faults(objects, leave))
    if not own_test:
        for fault in found:
            print(fault)
        return 1 if found else 0
    missed = 0
    for path, value in WRONG:
        wrong = copy.deepcopy(objects)
        place = wrong
        for step in path[:-1]:
            place = place[step]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        if not list(faults(wrong, leave)):
            print("no fault found:", ".".join(map(str, path)), "=", value)
            missed += 1
    print(f"{len(WRONG) - missed} of {len(WRONG)} faults found")
    return 1 if missed or found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
