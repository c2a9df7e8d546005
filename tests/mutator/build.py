"""build.py - the library, the program and the tests, built for mutants: no libtool, and a library with all symbols.

The lists of sources and the flags are those of the Makefile of a configured build. In DIR:
    obj/         one object a source, position independent; objects of tests
    base/        a directory as a build's: troupe, .libs/libtroupe.so.0, tests/unit/ROOM/ROOM_tests, tests/sim, tests/system
    cover/       the same with counters in the files that are mutated
"""
import hashlib
import os
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
LIBRARY = ".libs/libtroupe.so.0"


class Refused(Exception):
    """The compiler or the linker does not take it."""


def run(arguments, cwd=None):
    done = subprocess.run(arguments, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    if done.returncode != 0:
        raise Refused(done.stdout[-2000:])
    return done.stdout


class Build:
    def __init__(self, top, configured, directory, targets, jobs):
        self.top, self.configured, self.directory, self.jobs = top, configured, directory, jobs
        self.targets = set(targets)
        self.variables = self.read_makefile()
        compiler = shlex.split(self.variables["CC"])
        self.compiler = compiler
        self.flags = shlex.split("%(DEFS)s %(AM_CPPFLAGS)s %(CPPFLAGS)s %(TROUPE_CFLAGS)s" % self.variables)
        self.flags += ["-O1", "-g0", "-fPIC", "-fvisibility=default", "-Wno-maybe-uninitialized", "-Werror", "-DPIC",
                       '-DTESTS_SRCDIR="%s"' % top]
        self.link = ["-fuse-ld=lld"] if self.has_lld() else []
        self.libraries = shlex.split("%(TROUPE_EXTERNAL_LIBS)s" % self.variables)

    def read_makefile(self):
        """Some variables, expanded by make; programs of tests with their sources."""
        names = ["CC", "DEFS", "AM_CPPFLAGS", "CPPFLAGS", "TROUPE_CFLAGS", "TROUPE_EXTERNAL_LIBS", "CUNIT_LIBS", "CJSON_LIBS",
                 "troupe_base_sources", "troupe_sources", "troupe_SOURCES", "cli_sources", "check_PROGRAMS",
                 "test_programs", "top_builddir"]
        programs = self.print_variables(["check_PROGRAMS", "test_programs", "plugin_LTLIBRARIES", "noinst_LTLIBRARIES"])
        plugins = (programs["plugin_LTLIBRARIES"] + " " + programs["noinst_LTLIBRARIES"]).split()
        plugins = [p for p in plugins if p.startswith(("tests/", "examples/"))]
        self.programs = [p for p in (programs["check_PROGRAMS"] + " " + programs["test_programs"]).split()
                         if p.startswith(("tests/unit/", "tests/sim/")) or p == "tests/system/ctl_fake"]
        keys = {p: p.replace("/", "_") for p in self.programs}
        values = self.print_variables(names + [k + s for k in keys.values() for s in ("_SOURCES", "_LDADD")] +
                                      ["nodist_%s_SOURCES" % k for k in keys.values()])
        self.sources_of = {p: (values[k + "_SOURCES"] + " " + values["nodist_%s_SOURCES" % k]).split()
                           for p, k in keys.items()}
        self.libraries_of = {p: values[k + "_LDADD"].split() for p, k in keys.items()}
        sources = self.print_variables([p.replace("/", "_").replace(".", "_") + "_SOURCES" for p in plugins])
        self.plugins = {}  # path: sources
        for plugin in plugins:
            found = sources[plugin.replace("/", "_").replace(".", "_") + "_SOURCES"].split()
            path = os.path.join(os.path.dirname(plugin), ".libs", os.path.basename(plugin)[:-3] + ".so")
            self.plugins[path] = [s for s in found if s.endswith(".c")]
        return values

    def print_variables(self, names):
        lines = "\n".join("\t$(info %s=$(%s))" % (name, name) for name in names)
        text = "include Makefile\nmutate-print:\n%s\n\t@:\n" % lines
        done = subprocess.run(["make", "-s", "--no-print-directory", "-f", "-", "mutate-print"], cwd=self.configured,
                              input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit("mutate: %s is no configured build: %s" % (self.configured, done.stderr.strip()[-300:]))
        values = {}
        for line in done.stdout.splitlines():
            name, sign, value = line.partition("=")
            if sign and name in names:
                values[name] = value
        return values

    def has_lld(self):
        return subprocess.run(["which", "ld.lld"], stdout=subprocess.DEVNULL).returncode == 0

    # ---- objects
    def object_of(self, source, covered=False):
        kind = "cover" if covered and source in self.targets else "obj"
        return os.path.join(self.directory, kind, source[:-2] + ".o")

    def compile(self, source, output, text_path=None, more=()):
        """In the configured build, where its flags are right. A mutant's text is another file with the name of the source
        in its messages and in __FILE__."""
        os.makedirs(os.path.dirname(output), exist_ok=True)
        path = text_path or os.path.join(self.top, source)
        if not os.path.exists(path):
            path = os.path.join(self.configured, source)  # made by the build
        run(self.compiler + ["-I."] + self.flags + list(more) + ["-c", path, "-o", output], cwd=self.configured)

    def compile_all(self, sources, covered):
        def one(source):
            output = self.object_of(source, covered)
            path = os.path.join(self.top, source)
            wanted = hashlib.sha1(open(path, "rb").read()).hexdigest() if os.path.exists(path) else ""
            stamp = output + ".made"
            if os.path.exists(stamp) and open(stamp).read() == wanted + self.headers:
                return
            more = ["--coverage", "-fprofile-update=prefer-atomic"] if covered and source in self.targets else []
            self.compile(source, output, more=more)
            with open(stamp, "w") as file:
                file.write(wanted + self.headers)
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, sorted(set(sources))))

    def hash_headers(self):
        digest = hashlib.sha1(" ".join(self.flags).encode())
        for room in ("include", "src", "remote", "cluster", "tests"):
            for directory, names, files in sorted(os.walk(os.path.join(self.top, room))):
                for name in sorted(files):
                    if name.endswith(".h"):
                        digest.update(open(os.path.join(directory, name), "rb").read())
        return digest.hexdigest()

    # ---- programs
    def lists(self):
        self.base = self.variables["troupe_base_sources"].split()
        self.base = [s for s in self.base if s.endswith(".c")]
        self.shared = self.base + [s for s in self.variables["troupe_sources"].split() if s.endswith(".c")]
        self.tool = [s for s in self.variables["troupe_SOURCES"].split() if s.endswith(".c")]
        self.unit = ["tests/unit/unit.c", "tests/unit/unit_main.c"]

    def link_library(self, output, covered=False, instead=None):
        instead = instead or {}
        objects = [instead.get(s, self.object_of(s, covered)) for s in self.shared]
        os.makedirs(os.path.dirname(output), exist_ok=True)
        run(self.compiler[-1:] + self.link + ["-shared", "-o", output, "-Wl,-soname,libtroupe.so.0", "-Wl,-Bsymbolic"] +
            (["--coverage"] if covered else []) + objects + self.libraries + ["-lpthread"])

    def link_tool(self, output, covered=False, instead=None, more=()):
        instead = instead or {}
        objects = [instead.get(s, self.object_of(s, covered)) for s in self.tool + self.base]
        run(self.compiler[-1:] + self.link + ["-o", output] + (["--coverage"] if covered else []) + list(more) + objects +
            shlex.split(self.variables["CJSON_LIBS"]) + ["-lpthread", "-ldl"])

    def stands_alone(self, program):
        """Whether it has sources of the project in itself instead of the library."""
        return "libtroupe_base.la" in self.libraries_of[program]

    def link_program(self, program, directory, covered=False, instead=None):
        instead = instead or {}
        sources = [s for s in self.sources_of[program] if s.endswith(".c")]
        if "tests/unit/libunit.la" in self.libraries_of[program]:
            sources = sources + self.unit
        alone = self.stands_alone(program)
        if alone:
            sources = sources + self.base
        objects = [instead.get(s, self.object_of(s, covered)) for s in sources]
        output = os.path.join(directory, program)
        os.makedirs(os.path.dirname(output), exist_ok=True)
        library = [] if alone else [os.path.join(directory, LIBRARY)]
        run(self.compiler[-1:] + self.link + ["-rdynamic", "-o", output] + (["--coverage"] if covered else []) + objects +
            library + self.libraries + shlex.split(self.variables["CUNIT_LIBS"]) + ["-lpthread", "-ldl"])

    def make(self):
        self.lists()
        self.headers = self.hash_headers()
        sources = self.shared + self.tool + self.unit
        for program in self.programs:
            sources += [s for s in self.sources_of[program] if s.endswith(".c")]
        sources += [s for found in self.plugins.values() for s in found]
        self.compile_all(sources, False)
        self.compile_all([s for s in sources if s in self.targets], True)
        for name, covered in (("base", False), ("cover", True)):
            directory = os.path.join(self.directory, name)
            os.makedirs(os.path.join(directory, "tests"), exist_ok=True)
            self.link_deploy(directory)
            self.link_library(os.path.join(directory, LIBRARY), covered)
            self.link_tool(os.path.join(directory, "troupe"), covered)
            for plugin, found in self.plugins.items():
                path = os.path.join(directory, plugin)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                run(self.compiler[-1:] + self.link + ["-shared", "-o", path] + [self.object_of(s) for s in found])
            for program in self.programs:
                if not covered or self.stands_alone(program):
                    self.link_program(program, directory, covered)

    def link_deploy(self, directory):
        path = os.path.join(directory, "deploy")
        if not os.path.lexists(path):
            os.symlink(os.path.join(self.top, "deploy"), path)  # where the tool finds the launcher of multinode

    def is_of_tool(self, source):
        return source in self.tool or source in self.base

    def has_sanitized(self, source, test):
        """Whether the file that is built for a sanitizer is in what the test runs: the library, or for a script the tool.
        Programs that have the file in themselves stay as they are."""
        if test.script:
            return self.is_of_tool(source)
        return source in self.shared and not self.stands_alone(test.program)

    def programs_with(self, source):
        """Programs that have a mutant of this file in themselves: linked anew for it."""
        found = [p for p in self.programs if self.stands_alone(p) and
                 (source in self.sources_of[p] or source in self.base)]
        return found

    def mutate(self, source, text, directory, more=()):
        """A directory as base, with one file of other text: only what has it is linked anew. more: flags for that file,
        which checks itself then, and for the program that has it."""
        path = os.path.join(directory, "mutant.c")
        with open(path, "w") as file:
            file.write('#line 1 "%s"\n' % os.path.join(self.top, source) + text)
        output = os.path.join(directory, "mutant.o")
        self.compile(source, output, path, more)
        instead = {source: output}
        if self.is_of_tool(source):
            self.link_tool(os.path.join(directory, "troupe"), instead=instead, more=more)
        for program in self.programs_with(source) if not more else []:
            self.link_program(program, directory, instead=instead)
        if source in self.shared:
            self.link_library(os.path.join(directory, LIBRARY), instead=instead)

    def reset(self, directory):
        """The directory of a worker as base, by links to it."""
        base = os.path.join(self.directory, "base")
        os.makedirs(os.path.join(directory, ".libs"), exist_ok=True)
        self.link_deploy(directory)
        for name in [LIBRARY, "troupe"] + self.programs + list(self.plugins):
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                os.unlink(path)
            # A hard link: the program looks for its library beside itself.
            os.link(os.path.join(base, name), path)
