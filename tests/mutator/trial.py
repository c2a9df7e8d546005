"""trial.py - one test against one build: which lines it reaches, whether it fails, and an end when it hangs.

Every test runs in namespaces of its own (processes, network, /run) with a directory of its own for what is temporary: a mutant
may signal processes that are not its own, dial where it likes, and is ended before it has tidied up.
"""
import ctypes
import glob
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
MEMORY_MAX = 3 << 30
NAMESPACES = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "sh", "-c",
              'ip link set lo up 2>/dev/null; mount -t tmpfs tmpfs /run && "$@"; exit $?', "sh"]


def namespaces():
    """The words before a command that put it into namespaces of its own, with or without root; None: not here."""
    for user in ([], ["--user", "--map-root-user"]):
        words = NAMESPACES[:1] + user + NAMESPACES[1:]
        if subprocess.run(words + ["true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return words
    return None


class Test:
    """A suite of a unit program, one test of it, a simulation, or a script."""

    def __init__(self, name, program, arguments=(), script=False):
        self.name, self.program, self.arguments, self.script = name, program, list(arguments), script
        self.seconds = 0.0
        self.lines = {}    # source: set of lines
        self.tests = []    # names of those that passed

    def command(self, top, directory, program_directory):
        if self.script:
            return ["bash", os.path.join(top, self.program)] + self.arguments
        return [os.path.join(program_directory, self.program)] + self.arguments


# A script runs a tool that was linked with the sanitizer; as in tests/run, each process writes to a file what it finds.
SANITIZED_TOOL = ["env", "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1", "TROUPE_SANITIZER=asan"]


def sanitizer():
    """The words before a command in which one file was compiled for the address sanitizer; None: not here."""
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        path = subprocess.run(["gcc", "-print-file-name=" + name], stdout=subprocess.PIPE, text=True).stdout.strip()
        if not os.path.exists(path):
            return None
        libraries.append(os.path.realpath(path))
    return ["env", "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1", "LD_PRELOAD=" + ":".join(libraries)]


def limits():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # when the tester is killed, its tests end too
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))


def memory_of(group):
    """Pages of the processes of a session, in bytes: cheap enough for now and then."""
    total = 0
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(stat).read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == group:
            total += int(fields[21]) * 4096
    return total


def run(command, environment, directory, limit, on_line=None):
    """(outcome, text, seconds): passed; failed with the first line that says so; hung."""
    started = time.monotonic()
    temporary = tempfile.mkdtemp(prefix="mutant-", dir="/tmp")  # a short path, for sockets
    os.chmod(temporary, 0o755)
    environment = dict(environment, TMPDIR=temporary)
    process = subprocess.Popen(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limits)
    outcome, said, left, looked = None, "", b"", started
    try:
        while outcome is None:
            now = time.monotonic()
            if now - started > limit:
                outcome, said = "hung", "no end within %.0f s" % limit
                break
            if now - looked > 0.5:
                looked = now
                if memory_of(process.pid) > MEMORY_MAX:
                    outcome, said = "hung", "more than 3 GiB"
                    break
            if not select.select([process.stdout], [], [], 0.2)[0]:
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                process.stdout.close()
                process.wait(max(1.0, limit - (now - started)))
                if process.returncode not in (0, 77):
                    outcome, said = "failed", "exit status %d" % process.returncode
                else:
                    outcome = "passed"
                break
            lines = (left + data).split(b"\n")
            left = lines.pop()
            for line in lines:
                text = line.decode("utf-8", "replace")
                if on_line is not None:
                    on_line(text)
                elif text.startswith("FAIL "):
                    outcome, said = "failed", text[5:]
                    break
    except subprocess.TimeoutExpired:
        outcome, said = "hung", "no end within %.0f s" % limit
    finally:
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if not process.stdout.closed:
            process.stdout.close()
        shutil.rmtree(temporary, ignore_errors=True)
    return outcome, said, time.monotonic() - started


def environment(top, directory, seeds):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
    kept.update(LD_LIBRARY_PATH=os.path.join(directory, ".libs"), TROUPE_SRCDIR=top, TROUPE_BUILDDIR=directory,
                TROUPE_SIM_SEEDS=str(seeds))
    return kept


def coverage(objects, data, targets):
    """The lines that the counters below `data` say were reached, by source; and those that have counters at all."""
    reached, counted = {}, {}
    names = []
    for source in targets:
        counters = os.path.join(data, objects.lstrip("/"), source[:-2] + ".gcda")
        if os.path.exists(counters):
            note = os.path.join(objects, source[:-2] + ".gcno")
            link = counters[:-2] + "no"
            if not os.path.lexists(link):
                os.symlink(note, link)
            names.append((source, counters))
    if not names:
        return reached, counted
    done = subprocess.run(["gcov", "--json-format", "--stdout"] + [c for _, c in names], cwd=data, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace")
    by_end = {source: source for source, _ in names}
    for text in done.stdout.splitlines():
        if not text.startswith("{"):
            continue
        for file in json.loads(text)["files"]:
            source = next((s for s in by_end if file["file"].endswith("/" + s)), None)
            if source is None:
                continue
            for line in file["lines"]:
                counted.setdefault(source, set()).add(line["line_number"])
                if line["count"]:
                    reached.setdefault(source, set()).add(line["line_number"])
    return reached, counted


def survey(test, top, build, wrap, limit, seeds):
    """Run a test once with counters: its time, its lines. Returns what went wrong, or None."""
    data = os.path.join(build.directory, "data-" + test.name.replace("/", "_").replace(":", "_"))
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    cover = os.path.join(build.directory, "cover")
    own = test.script or build.stands_alone(test.program)
    variables = environment(top, cover, seeds)
    variables["GCOV_PREFIX"] = data
    found = []

    def line(text):
        if text.startswith("PASS "):
            found.append(text[5:].split(":")[-1].strip())

    command = test.command(top, cover, cover if own else os.path.join(build.directory, "base"))
    outcome, said, test.seconds = run(wrap + command, variables, cover, limit, line)
    test.tests = found
    test.lines, counted = coverage(os.path.join(build.directory, "cover"), data, build.targets)
    shutil.rmtree(data, ignore_errors=True)
    return (None if outcome == "passed" else "%s: %s" % (outcome, said)), counted
