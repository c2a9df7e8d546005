#!/bin/bash
# python.sh - the Python package on `troupe bridge` (deploy/python): it is installed into an environment without a network, its types are
# checked, its tests and its example run against a real node.
. "$(dirname "$0")/lib.sh"
test_begin
python=/usr/bin/python3 # Debian's: its packages are seen in the environment
for module in venv ensurepip setuptools wheel mypy; do
    "$python" -c "import $module" 2>/dev/null || skip "no python3 module $module (deploy/bootstrap --tests)"
done
cp -R "$src/deploy/python" "$work/python" # a build writes beside its sources
expect an_environment_is_made 0 "$python" -m venv --system-site-packages "$work/venv"
export PIP_DISABLE_PIP_VERSION_CHECK=1
expect the_package_is_installed 0 "$work/venv/bin/pip" install -q --no-index --no-build-isolation "$work/python"
expect it_says_that_it_has_types 0 "$work/venv/bin/python" -c \
    'import troupe, os; assert os.path.exists(os.path.join(os.path.dirname(troupe.__file__), "py.typed")) and "venv" in troupe.__file__'
types() { (cd "$work/python" && MYPY_CACHE_DIR=$work/mypy "$python" -m mypy --strict troupe examples tests); }
[ -n "$sanitizer" ] || expect its_types_are_right 0 types # a program of Python alone

background "$troupe" node --host 127.0.0.1 --port 0 --socket "$work/node.sock" --seed self >"$work/node.log" 2>&1
node_pid=$started
is_up() { "$troupe" --socket "$work/node.sock" is-available >/dev/null 2>&1; }
check the_node_is_up wait_until 60 is_up
export TEST_TROUPE=$troupe TEST_SOCKET=$work/node.sock
tests() { (cd "$work" && "$work/venv/bin/python" -m unittest -v "$work/python/tests/test_troupe.py") >"$work/tests.log" 2>&1; }
expect its_tests_pass 0 tests
has all_of_them_ran "Ran 25 tests" "$work/tests.log"

# ---- the example
export TROUPE_SOCKET=$work/node.sock
background env PATH="${troupe%/*}:$PATH" "$work/venv/bin/python" "$work/python/examples/greeter.py" >"$work/greeter.log" 2>&1
greeter=$started
greets() { "$troupe" ask /user/python/greeter world 2>/dev/null | grep -qF "hello, world"; }
check the_example_answers wait_until 60 greets
has it_says_where_it_is "/user/python/greeter of troupe.tcp://" "$work/greeter.log"
kill "$greeter"
is_gone() { ! "$troupe" tree /user | grep -q python; }
check its_actor_ends_with_it wait_until 60 is_gone
kill "$node_pid"
check the_node_ends await "$node_pid" 60

# ---- the same program, started by a node
cat >"$work/node.conf" <<CONF
bridge python { command = { "$work/venv/bin/python", "$work/python/examples/greeter.py", "--supervised" } }
CONF
background "$troupe" node --config "$work/node.conf" --host 127.0.0.1 --port 0 --socket "$work/node.sock" --seed self >"$work/second.log" 2>&1
node_pid=$started
check a_supervised_one_answers wait_until 60 greets
printed() { grep -q "bridge python: /user/python/greeter of" "$work/second.log"; }
check what_it_prints_is_in_the_log wait_until 60 printed
kill "$node_pid"
check that_node_ends await "$node_pid" 60
test_end
