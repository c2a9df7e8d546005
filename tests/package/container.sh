#!/bin/bash
# container.sh - the image of deploy/container is built from the Debian packages and a root of mmdebstrap, by buildah with
# chroot isolation; it runs as a user without privileges, and its node becomes ready and leaves at SIGTERM. With
# `tests/run --long`; where images cannot be built, `--no-container` says so and leaves it out.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/../system/lib.sh"
packages=${TROUPE_PACKAGES:-}
test_begin
packages=${packages:-$build/packages}
for tool in buildah mmdebstrap; do
    command -v $tool >/dev/null || { fail "$tool is there" "deploy/bootstrap --packages installs it, tests/run --no-container leaves this out"; test_end; }
done
check packages_are_there sh -c "ls '$packages'/troupe_*.deb '$packages'/libtroupe0_*.deb" # tests/package/debian.sh
# Images and containers of this test alone.
mkdir "$work/storage" "$work/run"
export CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_ISOLATION=chroot
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/storage" "$work/run" >"$CONTAINERS_STORAGE_CONF"
cleanups+=('buildah rm --all >/dev/null 2>&1; buildah rmi --all --force >/dev/null 2>&1')
if ! "$src/deploy/container/build" --packages "$packages" --name troupe-test >"$work/build.log" 2>&1; then
    fail image_is_built "tests/run --no-container leaves this out where images cannot be built"
    test_end
fi
pass image_is_built
config() { buildah inspect --type image --format "{{.OCIv1.Config.$1}}" troupe-test; }
check image_is_of_a_user_without_privileges test "$(config User)" = 952:952
config ExposedPorts >"$work/out"
has image_says_its_port 2552/tcp
config Entrypoint >"$work/out"
has image_runs_a_node trouped

# In the container: a node as the image starts it, asked as the probes of Kubernetes ask.
container=$(buildah from troupe-test)
inside() { buildah run "$container" -- "$@"; }
expect user_is_known 0 inside id -un
is user_is_that_of_the_package "$(cat "$work/out")" troupe
expect user_has_no_capabilities 0 inside grep CapEff /proc/self/status
has user_has_none 0000000000000000
expect root_cannot_be_written 1 inside touch /file
background buildah run "$container" -- trouped --host 127.0.0.1 --port 0 --seed self >"$work/node.log" 2>&1
node=$started
ready() { inside troupe check ready; }
check node_becomes_ready wait_until 60 ready
check node_is_alive inside troupe check alive
check node_is_a_member inside troupe is-available
check management_finds_its_library inside sh -c 'ls /usr/lib/*/libwebsockets.so.*'
expect node_leaves 0 inside troupe leave --timeout 60s
ended node_ends "$node" 0

# As a pod: the configuration of deploy/kubernetes, a cookie that root owns and the user's group may read, and a place for the
# control socket that is everybody's. No other pod can be found, so the node is alive and not ready.
root=$(buildah mount "$container")
mkdir "$root/etc/troupe/secret" "$root/run/node"
chmod 1777 "$root/run/node"
awk 'on { sub(/^    /, ""); print } /^  troupe.conf: \|$/ { on = 1 }' "$src/deploy/kubernetes/configmap.yaml" >"$root/etc/troupe/troupe.conf"
"$troupe" cookie gen >"$root/etc/troupe/secret/cookie"
chmod 440 "$root/etc/troupe/secret/cookie"
chown 0:952 "$root/etc/troupe/secret/cookie"
pod() { buildah run --env POD_NAME=troupe-1 --env POD_NAMESPACE=shop --env XDG_RUNTIME_DIR=/run/node "$container" -- "$@"; }
background pod trouped --config /etc/troupe/troupe.conf --port 0 >"$work/pod.log" 2>&1
node=$started
alive() { pod troupe check alive; }
check pod_is_alive_without_the_others wait_until 60 alive
expect pod_is_not_ready 1 pod troupe check ready
has pod_says_why "cluster-membership: fail"
expect pod_is_told_to_end 0 pod troupe leave --no-wait
ended pod_ends "$node" 0
test_end
