"""self_test.py - tests/mutate --self-test: an example whose tests are thorough for one function and have a hole in another."""
import os
import subprocess
import tempfile

import source
import trial

EXAMPLE = r"""
/* "quoted { in a comment" */
#define WRAP(x) do { if (x) { return 1; } } while (0)
enum { COLOUR_RED, COLOUR_BLUE };
static int steps;
static const char *const names[] = { "if (a < b) {", "}" };

static int minus(int a, int b) { return a - b; }

int
tested(int a, int b)
{
    int result = COLOUR_RED;

    if (a > 0 && b > 0) {
        result += minus(a, b);
    } else {
        result -= 1;
    }
    steps++;
    return result;
}

int
hole(int a)
{
    steps += 10;
    if (a > 5) {
        return COLOUR_BLUE;
    }
    for (int i = 0; i < 3; i++) {
        a += i;
    }
    return names[0][0] == 'i' ? a : 0;
}
"""
TEST = r"""
#include <stdio.h>
#include "example.c"
#define CHECK(e) do { if (!(e)) { printf("FAIL example:%d %s\n", __LINE__, #e); return 1; } } while (0)
int main(void)
{
    int before = steps;
    CHECK(tested(5, 2) == 3); CHECK(tested(2, 5) == -3); CHECK(tested(1, 1) == 0); CHECK(tested(0, 2) == -1);
    CHECK(tested(2, 0) == -1); CHECK(tested(-1, -1) == -1); CHECK(steps == before + 6); CHECK(tested(7, 1) == 6);
    CHECK(hole(9) == 1); CHECK(hole(1) == 4); /* neither 5 nor 6, nor what it adds to steps */
    printf("PASS example\n");
    return 0;
}
"""
HANG = "#!/bin/sh\necho PASS begun\nexec sleep 60\n"


def judged(directory, text):
    """As a campaign judges, without coverage: refused, killed or survived."""
    with open(os.path.join(directory, "example.c"), "w") as file:
        file.write(text)
    program = os.path.join(directory, "example")
    built = subprocess.run(["gcc", "-O0", "-w", "-o", program, os.path.join(directory, "test.c")], stderr=subprocess.DEVNULL)
    if built.returncode != 0:
        return "refused"
    return "survived" if trial.run([program], dict(os.environ), directory, 2)[0] == "passed" else "killed"


def main():
    failed = []

    def check(name, holds):
        print("PASS" if holds else "FAIL", name, flush=True)
        if not holds:
            failed.append(name)

    reader = source.Reader("example.c", EXAMPLE)
    check("functions_are_found", [name for name, _, _ in reader.functions] == ["minus", "tested", "hole"])
    mutants = {name: reader.mutants(first, last, name) for name, first, last in reader.functions}
    every = [m for by_operator in mutants.values() for group in by_operator.values() for m in group]
    check("every_operator_is_seen", {m.operator for m in every} == set(source.OPERATORS))
    check("comments_literals_and_macros_are_left_alone",
          all("WRAP" not in m.old and "quoted" not in m.old and m.old != '"if (a < b) {"' for m in every))
    moved = source.Reader("example.c", "\n\nint before;\n" + EXAMPLE)
    again = {m.name for n, a, b in moved.functions for group in moved.mutants(a, b, n).values() for m in group}
    check("a_mutant_keeps_its_name_when_lines_move", again == {m.name for m in every} and len(again) == len(every))
    chosen = [[m.name for _, m in source.choose({"example.c": reader}, {"room": ["example.c"]}, seed, 5, lambda: True)]
              for seed in (1, 1, 2)]
    check("the_same_seed_chooses_the_same", chosen[0] == chosen[1] != chosen[2])
    check("at_most_five_a_function", len(chosen[0]) <= 3 * 5 and len(set(chosen[0])) == len(chosen[0]))
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "test.c"), "w") as file:
            file.write(TEST)
        check("the_example_passes", judged(directory, EXAMPLE) == "survived")
        outcomes = {name: [(judged(directory, m.apply(EXAMPLE)), m.said()) for group in by_operator.values() for m in group]
                    for name, by_operator in mutants.items()}
        lived = [said for outcome, said in outcomes["tested"] if outcome == "survived"]
        print("".join("  survived: %s\n" % said for said in lived), end="")
        check("what_is_tested_is_killed", lived == [] and len(outcomes["tested"]) >= 8)
        holes = [said for outcome, said in outcomes["hole"] if outcome == "survived"]
        check("the_hole_is_found", "steps += 10; -> ;" in holes and "> -> >=" in holes)
        hang = os.path.join(directory, "hang")
        with open(hang, "w") as file:
            file.write(HANG)
        check("a_hang_ends", trial.run(["sh", hang], dict(os.environ), directory, 0.5)[0] == "hung")
    return 1 if failed else 0
