#!/bin/bash
# kubernetes.sh - the manifests of deploy/kubernetes fit together (kubernetes.py says how), and the configuration in them is
# one: each pod gets the address by which the others know it. So does the file for compose.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
python=
for name in /usr/bin/python3 python3; do # Debian's has its package
    "$name" -c 'import yaml' 2>/dev/null && python=$name && break
done
[ -n "$python" ] || skip "python3-yaml is not there (apt-get install python3-yaml)"
leave=$(sed -n 's/^ *leave-timeout = \([0-9]*\)s.*/\1/p' "$src/docs/reference.conf")
check manifests_fit_together "$python" "$src/tests/system/kubernetes.py" "$src/deploy/kubernetes" "$leave"
sed 's/^/    /' "$work/out"
check each_fault_would_be_found "$python" "$src/tests/system/kubernetes.py" --self "$src/deploy/kubernetes" "$leave"

# What a pod's node reads: its own name, and pod 0 first among the seeds.
load() { "$python" -c 'import sys, yaml; print(eval(sys.argv[2], {"o": yaml.safe_load(open(sys.argv[1]))}))' "$@"; }
load "$src/deploy/kubernetes/configmap.yaml" 'o["data"]["troupe.conf"]' >"$work/troupe.conf"
"$troupe" cookie gen >"$work/cookie"
chmod 400 "$work/cookie"
sed -i "s|/etc/troupe/secret/cookie|$work/cookie|" "$work/troupe.conf"
pod() { POD_NAME=troupe-$1 POD_NAMESPACE=shop "$troupe" "${@:2}"; }
check configuration_is_one pod 1 config check --keys-only --config "$work/troupe.conf"
pod 1 config show --config "$work/troupe.conf" >"$work/shown"
has pod_has_its_address "troupe-1.troupe.shop.svc" "$work/shown"
seeds=$(grep -o 'troupe\.tcp://demo@[^", ]*' "$work/shown" | tr '\n' ' ')
is seeds_begin_with_pod_0 "$seeds" "troupe.tcp://demo@troupe-0.troupe.shop.svc:2552 troupe.tcp://demo@troupe-1.troupe.shop.svc:2552 troupe.tcp://demo@troupe-2.troupe.shop.svc:2552 "
# A node of that configuration whose other pods cannot be found, by what the probes ask: it is alive, and not ready.
background env POD_NAME=troupe-1 POD_NAMESPACE=shop "$troupe" node --config "$work/troupe.conf" --bind-port 0 --socket "$work/pod.sock" >"$work/pod.log" 2>&1
node=$started
alive() { "$troupe" --socket "$work/pod.sock" check alive; }
check pod_is_alive_without_the_others wait_until 60 alive
unready() { "$troupe" --socket "$work/pod.sock" check ready >"$work/probe"; [ $? -eq 1 ]; }
check pod_is_not_ready wait_until 60 unready
has pod_says_why "cluster-membership: fail" "$work/probe"
kill -TERM "$node"
ended pod_ends "$node" 0
user=$(load "$src/deploy/kubernetes/statefulset.yaml" 'o["spec"]["template"]["spec"]["securityContext"]["runAsUser"]')
is user_is_that_of_the_image "$(sed -n 's/^USER //p' "$src/deploy/container/Containerfile")" "$user:$user"

# compose.yaml: the same image, time to leave, and variables that a node knows.
compose=$src/deploy/container/compose.yaml
is compose_has_three_nodes "$(load "$compose" 'len(o["services"])')" 3
image=$(load "$src/deploy/kubernetes/statefulset.yaml" 'o["spec"]["template"]["spec"]["containers"][0]["image"]')
is compose_has_the_same_image "$(load "$compose" '{s["image"] for s in o["services"].values()}')" "{'$image'}"
is image_has_the_version "$image" "troupe:$("$troupe" version | sed -n 's/^troupe \([0-9.]*\).*/\1/p')"
grace=$(load "$compose" 'min(int(s["stop_grace_period"][:-1]) for s in o["services"].values())')
check compose_gives_time_to_leave test "$grace" -ge "$((leave + 15))"
load "$compose" '"\n".join(k + "=" + v for k, v in o["services"]["node1"]["environment"].items())' |
    sed "s/\${TROUPE_COOKIE:.*}/$(cat "$work/cookie")/" >"$work/environment"
mapfile -t environment <"$work/environment"
check compose_variables_are_keys env "${environment[@]}" "$troupe" config check --keys-only --host node1
env "${environment[@]}" "$troupe" config show --host node1 >"$work/shown"
has compose_seeds_are_two "troupe.tcp://demo@node2:2552" "$work/shown"
test_end
