"""source.py - the words of a C file, its functions, and the mutants that they offer.

A careful reader of words, no parser: it knows comments, literals, lines of the preprocessor and brackets, which
suffices for sources in the style of this project. What it gets wrong the compiler refuses, and is not counted.
"""
import hashlib
import os
import re

WORD = re.compile(r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*|/\*.*?\*/)
  | (?P<line>(?<![^\n])[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<string>(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
  | (?P<char>[LuU]?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)

OPEN = {"(": ")", "[": "]", "{": "}"}
CONTROL = {"if", "while", "for", "switch", "return", "sizeof", "do", "else", "case", "default", "goto", "break",
           "continue", "_Alignof", "typeof", "__typeof__", "_Static_assert", "_Generic"}
# What proves nothing when it is gone, and what must not meet a file or process that it is not meant for.
CLAIM = re.compile(r"assert|^TRPI_USE|^va_end$", re.I)
HARMFUL = {"kill", "unlink", "unlinkat", "rename", "renameat", "rmdir", "remove", "chmod", "fchmod", "chown", "fchown",
           "truncate", "ftruncate"}
SYMMETRIC = re.compile(r"equal$|^(str|mem|strn|strcase)cmp$")  # what is compared with what is the same
OPERATORS = ("negated condition", "off by one", "dropped statement", "swapped arguments", "dropped else",
             "constant of another key")


class Word:
    __slots__ = ("kind", "text", "start", "end", "line", "mate")

    def __init__(self, kind, text, start, line):
        self.kind, self.text, self.start, self.end, self.line = kind, text, start, start + len(text), line
        self.mate = None  # the index of the other bracket


def words(text):
    """All words but blanks, comments and lines of the preprocessor."""
    found, line = [], 1
    for match in WORD.finditer(text):
        kind = match.lastgroup
        if kind not in ("space", "line"):
            found.append(Word(kind, match.group(), match.start(), line))
        line += match.group().count("\n")
    stack = []
    for index, word in enumerate(found):
        if word.kind != "sign":
            continue
        if word.text in OPEN:
            stack.append(index)
        elif word.text in OPEN.values() and stack and OPEN[found[stack[-1]].text] == word.text:
            word.mate = stack.pop()
            found[word.mate].mate = index
    return found


def functions(found):
    """(name, first word, last word) of the body of each function: a brace behind a parenthesis, outside of all others."""
    result, index = [], 0
    while index < len(found):
        word = found[index]
        if word.text == "{" and word.mate is not None:
            before = found[index - 1]
            if before.text == ")" and before.mate and found[before.mate - 1].kind == "name":
                result.append((found[before.mate - 1].text, index, word.mate))
            index = word.mate
        elif word.text in ("(", "[") and word.mate is not None:
            index = word.mate
        index += 1
    return result


class Mutant:
    """One change: of text[start:end] to new."""

    def __init__(self, path, function, operator, text, start, end, new, line, anchor):
        self.path, self.function, self.operator = path, function, operator
        self.start, self.end, self.old, self.new, self.line = start, end, text[start:end], new, line
        self.anchor = anchor  # the line where its statement begins
        # The same change keeps its name while lines above it come and go, and when its file moves to another folder.
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start)
        place = " ".join(text[begin:stop].split()) + "\0%d" % (start - begin)
        key = "\0".join((os.path.basename(path), function, operator, self.old, new, place))
        self.name = hashlib.sha1(key.encode()).hexdigest()[:8]

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]

    def said(self):
        def short(part):
            part = " ".join(part.split())
            return part if len(part) <= 100 else part[:60] + " ... " + part[-30:]
        return "%s -> %s" % (short(self.old), short(self.new) or "nothing")


class Reader:
    """The mutants of one file."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.words = words(text)
        self.functions = functions(self.words)
        self.constants = sorted({w.text for w in self.words if self.is_constant(w)})
        self.keys = sorted({w.text for w in self.words if self.is_key(w)})

    @staticmethod
    def is_constant(word):
        return word.kind == "name" and re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", word.text) is not None

    @staticmethod
    def is_key(word):
        return word.kind == "string" and re.fullmatch(r'"[a-z][A-Za-z0-9]*([.-][a-z0-9]+)*"', word.text) is not None

    def mutants(self, first, last, name):
        """All mutants of one function, by operator."""
        self.body, self.function = (first, last), name
        self.found = {operator: [] for operator in OPERATORS}
        self.anchor = self.words[first].line
        index = first + 1
        begins = True  # a statement
        self.head = first  # the last word of the head of the last `for`
        while index < last:
            word = self.words[index]
            if word.text == "for":
                self.head = self.words[index + 1].mate
            if begins:
                self.anchor = word.line
            if word.kind == "name" and CLAIM.search(word.text) and self.words[index + 1].text == "(":
                index = self.words[index + 1].mate + 1
                begins = False
                continue
            self.look(index, begins)
            begins = word.text in (";", "{", "}", ":") and index > self.head or word.text in ("else", "do") or \
                (word.text == ")" and self.closes_control(index))
            index += 1
        return self.found

    def closes_control(self, index):
        mate = self.words[index].mate
        return mate is not None and self.words[mate - 1].text in ("if", "while", "for", "switch")

    def add(self, operator, start, end, new, line):
        if self.text[start:end] != new:
            self.found[operator].append(Mutant(self.path, self.function, operator, self.text, start, end, new, line,
                                               self.anchor))

    def look(self, index, begins):
        word, after = self.words[index], self.words[index + 1]
        if word.text in ("if", "while") and after.text == "(":
            self.negate(index + 2, after.mate - 1)
        elif word.text == "return":
            end = self.statement_end(index)
            if end is not None and self.is_truth(index + 1, end - 1):
                self.negate(index + 1, end - 1)
        elif word.text == "else":
            end = self.branch_end(index + 1)
            if end is not None:
                self.add("dropped else", word.start, self.words[end].end, "", word.line)
        elif word.kind == "sign" and word.text in ("<", "<=", ">", ">="):
            new = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[word.text]
            if not self.is_greatest(index):
                self.add("off by one", word.start, word.end, new, word.line)
        elif word.kind == "number":
            self.number(index)
        elif self.is_constant(word):
            self.constant(word)
        elif self.is_key(word) and self.words[index - 1].text in ("(", ",") and after.text in (",", ")"):
            for other in self.keys:
                self.add("constant of another key", word.start, word.end, other, word.line)
        if word.kind == "name" and after.text == "(" and word.text not in CONTROL and word.text not in HARMFUL and \
                not SYMMETRIC.search(word.text):
            self.swap(index + 1)
        if begins and (word.kind == "name" or word.text in ("*", "(", "++", "--")):
            self.drop(index)

    # ---- conditions
    def parts(self, first, last, signs):
        """The ranges between the signs of the outermost level."""
        ranges, begin, index = [], first, first
        while index <= last:
            word = self.words[index]
            if word.text in OPEN and word.mate is not None:
                index = word.mate
            elif word.text in signs:
                ranges.append((begin, index - 1))
                begin = index + 1
            index += 1
        return ranges + [(begin, last)]

    def is_truth(self, first, last):
        if first > last:
            return False
        signs = {"&&", "||", "==", "!=", "<", "<=", ">", ">="}
        return self.words[first].text == "!" or len(self.parts(first, last, signs)) > 1 and \
            len(self.parts(first, last, {"?"})) == 1

    def negate(self, first, last):
        ranges = self.parts(first, last, {"&&", "||"})
        if len(ranges) > 1 and len(self.parts(first, last, {"?"})) == 1:
            ranges.append((first, last))
        else:
            ranges = [(first, last)]
        for begin, end in ranges:
            start, stop = self.words[begin].start, self.words[end].end
            self.add("negated condition", start, stop, "!(%s)" % self.text[start:stop], self.words[begin].line)

    def operand(self, index, step, signs):
        """The words from index to one of these signs on the same level."""
        texts = []
        while self.body[0] < index < self.body[1]:
            word = self.words[index]
            if word.text in signs:
                break
            if word.mate is not None and (word.text in OPEN) == (step > 0):
                first, last = sorted((index, word.mate))
                texts.append(" ".join(w.text for w in self.words[first:last + 1]))
                index = word.mate
            elif word.mate is not None:
                break
            else:
                texts.append(word.text)
            index += step
        return " ".join(texts[::step]), index

    def is_greatest(self, index):
        """a > b ? a : b, where equal ones are the same."""
        ends = {";", ",", "=", "+=", "return", "&&", "||", "?", ":", "{", "}"}
        left, _ = self.operand(index - 1, -1, ends)
        right, at = self.operand(index + 1, 1, ends)
        if self.words[at].text != "?":
            return False
        one, at = self.operand(at + 1, 1, ends)
        two, _ = self.operand(at + 1, 1, ends)
        return {left, right} == {one, two}

    # ---- numbers and constants
    def number(self, index):
        word, before = self.words[index], self.words[index - 1].text
        match = re.fullmatch(r"([0-9]+)([uUlL]*)", word.text)
        begins_loop = before == "=" and index <= self.head
        if match is None or not (begins_loop or before in ("+", "-", "<", "<=", ">", ">=", "==", "!=", "[", "+=", "-=")):
            return  # beside a comparison or a sum, an index, or where a loop begins
        value = int(match.group(1))
        if value >= 256 or (before == "[" and value >= 8) or (value >= 16 and value & (value - 1) == 0):
            return  # a unit, or room for a text: one more or less is seldom another program
        if before == "-" and self.words[index - 2].text in ("?", ":", "return", "(", ",", "=", "=="):
            return  # a sign that a comparison returns, or "none"
        self.add("off by one", word.start, word.end, "%d%s" % (value + 1, match.group(2)), word.line)
        if value > 1:
            self.add("off by one", word.start, word.end, "%d%s" % (value - 1, match.group(2)), word.line)

    def constant(self, word):
        mine = word.text.split("_")
        best, others = 1 if mine[0] in ("TRP", "TRPI") else 0, []
        for other in self.constants:
            theirs = other.split("_")
            common = 0
            while common < min(len(mine), len(theirs)) and mine[common] == theirs[common]:
                common += 1
            if other != word.text and common >= max(best, 1):
                if common > best:
                    best, others = common, []
                if common == best and not (best == 1 and mine[0] in ("TRP", "TRPI")):
                    others.append(other)
        for other in others:
            self.add("constant of another key", word.start, word.end, other, word.line)

    # ---- calls and statements
    def swap(self, opening):
        close = self.words[opening].mate
        if close is None or close == opening + 1:
            return
        ranges = self.parts(opening + 1, close - 1, {","})
        for (a, b), (c, d) in zip(ranges, ranges[1:]):
            if a > b or c > d:
                continue
            one = self.text[self.words[a].start:self.words[b].end]
            two = self.text[self.words[c].start:self.words[d].end]
            if one != two:
                between = self.text[self.words[b].end:self.words[c].start]
                self.add("swapped arguments", self.words[a].start, self.words[d].end, two + between + one,
                         self.words[a].line)

    def statement_end(self, index):
        while index < self.body[1]:
            word = self.words[index]
            if word.text == ";":
                return index
            if word.text in OPEN and word.mate is not None:
                index = word.mate
            elif word.text in OPEN.values():
                return None
            index += 1
        return None

    def branch_end(self, index):
        """The last word of the statement that begins at index."""
        word = self.words[index]
        if word.text == "{":
            return word.mate
        if word.text == "if":
            end = self.branch_end(self.words[index + 1].mate + 1)
            if end is not None and self.words[end + 1].text == "else":
                end = self.branch_end(end + 2)
            return end
        if word.text in ("for", "while", "switch"):
            return self.branch_end(self.words[index + 1].mate + 1)
        return self.statement_end(index)

    def drop(self, index):
        """Calls, assignments, increments, and jumps; no declaration, no label."""
        word, after = self.words[index], self.words[index + 1]
        end = self.statement_end(index)
        if end is None or CLAIM.search(word.text):
            return
        if word.text in ("break", "continue") or (word.text == "return" and after.text == ";"):
            self.add("dropped statement", word.start, self.words[end].end, ";", word.line)
            return
        if word.text in CONTROL or word.text in ("static", "const", "struct", "enum", "union", "unsigned", "typedef"):
            return
        if after.kind == "name" or after.text == ":":
            return
        if word.text == "(" and after.text == "void" and self.words[index + 3].kind == "name" and index + 4 == end:
            return  # (void)unused;
        if word.kind == "name" and after.text == "*" and self.words[index + 2].kind in ("name", "sign") and \
                self.words[index + 2].text not in ("(",):
            return  # type *name
        signs = {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>=", "%="}
        if len(self.parts(index, end - 1, signs)) == 1 and self.words[end - 1].text not in (")", "++", "--") and \
                word.text not in ("++", "--"):
            return
        self.add("dropped statement", word.start, self.words[end].end, ";", word.line)


def choose(readers, rooms, seed, per_function, wanted_of):
    """Mutants in the order in which they are tried: rooms in turn, functions of a room in an order of the seed, no
    function again before each had its turn, at most per_function each. A choice depends on the seed and on its own
    function alone, so that it stays when other files change."""
    def order(*parts):
        return hashlib.sha1("\0".join(str(part) for part in (seed,) + parts).encode()).hexdigest()

    queues = []
    for room, paths in rooms.items():
        turns = []
        for path in paths:
            reader = readers[path]
            for name, first, last in reader.functions:
                by_operator = reader.mutants(first, last, name)
                taken = []
                for mutants in by_operator.values():
                    mutants.sort(key=lambda m: order(m.name))
                while len(taken) < per_function and any(by_operator.values()):
                    operators = [o for o in OPERATORS if by_operator[o]]
                    operators.sort(key=lambda o: order(os.path.basename(path), name, len(taken), o))
                    mutant = by_operator[operators[0]].pop(0)
                    if all(mutant.start != other.start or mutant.end != other.end for other in taken):
                        taken.append(mutant)
                for turn, mutant in enumerate(taken):
                    turns.append((turn, order(os.path.basename(path), name), mutant))
        turns.sort(key=lambda t: t[:2])
        queues.append([(room, mutant) for _, _, mutant in turns])
    while any(queues) and wanted_of():
        for queue in queues:
            if queue:
                yield queue.pop(0)
