"""A naive backtracking matcher that counts its steps, and texts that make a pattern take many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
_SIGNS = "a1 \n.!'\")(<[:-_,\t/@é東A"
"""Characters that a class is tried with."""


class TooManyStepsError(Exception):
    """The matcher went further than it was allowed."""


class _Cached(dict[str, Any]):
    """A function of one character that remembers."""

    def __init__(self, of: Callable[[str], Any]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, sign: str) -> Any:
        self[sign] = found = self._of(sign)
        return found


class PatternTwin:
    """One pattern as a program whose every instruction is a step, without any shortcut of ``re``.

    Parameters
    ----------
    pattern : re.Pattern
        Without references to groups. One of bytes is given text of the same code points.
    """

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.tree = _parser.parse(pattern.pattern, pattern.flags)
        self.flags = pattern.flags
        self._main = self._compiled(self.tree)
        self._left = 0

    def find(self, text: str, most: int = 1 << 60) -> tuple[list[tuple[int, int]], int]:
        """Return the spans that ``finditer`` gives, and the steps it took.

        Raises
        ------
        TooManyStepsError
            More than ``most``.
        """
        self._left = most
        spans, at, barred = list[tuple[int, int]](), 0, -1
        while at <= len(text):
            end = self._run(self._main, text, at, barred)
            if end < 0:
                at += 1
                barred = -1
                continue
            spans.append((at, end))
            # An empty match may follow one that is not, at once; never itself.
            barred = end if end == at else -1
            at = end
        return spans, most - self._left

    def _run(self, program: list[tuple[Any, ...]], text: str, at: int, barred: int = -1) -> int:
        """Return where the first match from here on ends, or -1; ``barred`` is no end for it."""
        stack: list[tuple[int, int, int, tuple[int, ...]]] = [(0, at, at, ())]
        left, size = self._left, len(text)
        while stack:
            pc, pos, low, marks = stack.pop()
            if pos > low:
                stack.append((pc, pos - 1, low, marks))
            while True:
                left -= 1
                if left < 0:
                    self._left = -1
                    raise TooManyStepsError
                op, *rest = program[pc]
                if op == "sign":
                    if pos < size and rest[0][text[pos]]:
                        pos += 1
                        pc += 1
                        continue
                    break
                if op == "run":
                    accepts, least, most, keep = rest
                    end = pos
                    while end < size and end - pos < most and accepts[text[end]]:
                        end += 1
                    left -= end - pos
                    if end - pos < least:
                        break
                    pc += 1
                    if not keep and end - pos > least:
                        stack.append((pc, end - 1, pos + least, marks))
                    pos = end
                    continue
                if op == "branch":
                    table, ways = rest
                    left -= ways
                    chosen = table[text[pos] if pos < size else ""]
                    if not chosen:
                        break
                    stack += [(to, pos, pos, marks) for to in chosen[:0:-1]]
                    pc = chosen[0]
                elif op == "split":
                    stack.append((rest[1], pos, pos, marks))
                    pc = rest[0]
                elif op == "jump":
                    pc = rest[0]
                elif op == "mark":
                    marks = (*marks, pos)
                    pc += 1
                elif op == "moved":
                    # A round that took nothing is the last.
                    moved, marks = marks[-1] != pos, marks[:-1]
                    pc = rest[0] if moved else pc + 1
                elif op == "at":
                    if not rest[0](text, pos):
                        break
                    pc += 1
                elif op == "look":
                    inner, wanted, back = rest
                    self._left = left
                    end = self._run(inner, text, pos - back) if pos >= back else -1
                    left = self._left
                    if (end >= 0) != wanted:
                        break
                    pc += 1
                elif op == "atomic":
                    self._left = left
                    end = self._run(rest[0], text, pos)
                    left = self._left
                    if end < 0:
                        break
                    pos, pc = end, pc + 1
                else:
                    if pos == barred:
                        break
                    self._left = left
                    return pos
        self._left = left
        return -1

    def _compiled(self, tree: Any) -> list[tuple[Any, ...]]:
        program: list[tuple[Any, ...]] = []
        self._add(program, tree, self.flags)
        program.append(("end",))
        return program

    def _add(self, out: list[tuple[Any, ...]], tree: Any, flags: int) -> None:
        for op, value in tree:
            if op in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
                out.append(("sign", _Cached(accepting((op, value), flags))))
            elif op is c.BRANCH:
                self._branch(out, value[1], flags)
            elif op is c.SUBPATTERN:
                self._add(out, value[3], (flags | value[1]) & ~value[2])
            elif op in _REPEATS:
                self._repeat(out, op, value, flags)
            elif op is c.ATOMIC_GROUP:
                inner: list[tuple[Any, ...]] = []
                self._add(inner, value, flags)
                out.append(("atomic", [*inner, ("end",)]))
            elif op in (c.ASSERT, c.ASSERT_NOT):
                inner = []
                self._add(inner, value[1], flags)
                back = value[1].getwidth()[0] if value[0] < 0 else 0
                out.append(("look", [*inner, ("end",)], op is c.ASSERT, back))
            elif op is c.AT:
                out.append(("at", _place(value, flags)))
            else:
                raise NotImplementedError(f"{op} is not known to the twin")

    def _branch(self, out: list[tuple[Any, ...]], ways: Sequence[Any], flags: int) -> None:
        here = len(out)
        out.append(())
        starts: list[tuple[int, Callable[[str], bool] | None]] = []
        jumps = []
        for way in ways:
            first = way[0] if len(way) else None
            simple = first is not None and first[0] in (c.LITERAL, c.IN)
            starts.append((len(out), accepting(first, flags) if simple else None))
            self._add(out, way, flags)
            jumps.append(len(out))
            out.append(())
        for at in jumps:
            out[at] = ("jump", len(out))

        def chosen(sign: str) -> list[int]:
            return [at for at, first in starts if first is None or (sign and first(sign))]

        out[here] = ("branch", _Cached(chosen), len(ways))

    def _repeat(self, out: list[tuple[Any, ...]], op: Any, value: Any, flags: int) -> None:
        least, most, body = value
        endless = most is c.MAXREPEAT
        if op is c.POSSESSIVE_REPEAT and not _is_sign(body):
            inner: list[tuple[Any, ...]] = []
            self._repeat(inner, c.MAX_REPEAT, value, flags)
            out.append(("atomic", [*inner, ("end",)]))
            return
        if _is_sign(body) and op is not c.MIN_REPEAT:
            accepts = _Cached(accepting(_sign(body), flags))
            bound = 1 << 60 if endless else int(most)
            out.append(("run", accepts, least, bound, op is c.POSSESSIVE_REPEAT))
            return
        for _ in range(least):
            self._add(out, body, flags)
        ends = []
        for _ in range(1 if endless else int(most) - least):
            split = len(out)
            out.append(())
            if endless:
                out.append(("mark",))
            self._add(out, body, flags)
            if endless:
                out.append(("moved", split))
            ends.append(split)
        for split in ends:
            ways = (split + 1, len(out))
            out[split] = ("split", *(ways if op is c.MAX_REPEAT else ways[::-1]))


def _is_sign(body: Any) -> bool:
    return len(body) == 1 and _sign(body)[0] in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN)


def _sign(body: Any) -> Any:
    op, value = body[0]
    plain = op is c.SUBPATTERN and not value[1] and not value[2] and len(value[3]) == 1
    return _sign(value[3]) if plain else (op, value)


def accepting(node: Any, flags: int) -> Callable[[str], bool]:
    """Return which characters a node for one of them accepts."""
    op, value = node
    if op is c.ANY:
        return lambda sign: bool(flags & re.DOTALL) or sign != "\n"
    items = value if op is c.IN else [(c.LITERAL, value)]
    negated = op is c.NOT_LITERAL or items[0][0] is c.NEGATE

    def one(sign: str) -> bool:
        for kind, what in items:
            if kind is c.LITERAL and ord(sign) == what:
                return True
            if kind is c.RANGE and what[0] <= ord(sign) <= what[1]:
                return True
            if kind is c.CATEGORY and _in_category(sign, str(what), flags):
                return True
        return False

    def accepts(sign: str) -> bool:
        found = one(sign)
        if flags & re.IGNORECASE and not found:
            found = any(one(other) for other in (sign.lower(), sign.upper()) if len(other) == 1)
        return found != negated

    return accepts


_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def _in_category(sign: str, name: str, flags: int) -> bool:
    wanted = "NOT_" not in name
    pattern = _CATEGORIES[name.removeprefix("CATEGORY_").removeprefix("NOT_")]
    ascii_only = re.ASCII if not flags & re.UNICODE or flags & re.ASCII else 0
    return (re.match(pattern, sign, ascii_only) is not None) == wanted


def _place(what: Any, flags: int) -> Callable[[str, int], bool]:
    def word(text: str, at: int) -> bool:
        return 0 <= at < len(text) and _in_category(text[at], "WORD", flags)

    many = bool(flags & re.MULTILINE)
    if what is c.AT_BEGINNING_STRING or (what is c.AT_BEGINNING and not many):
        return lambda _, at: at == 0
    if what is c.AT_BEGINNING:
        return lambda text, at: at == 0 or text[at - 1] == "\n"
    if what is c.AT_END_STRING:
        return lambda text, at: at == len(text)
    if what is c.AT_END and many:
        return lambda text, at: at == len(text) or text[at] == "\n"
    if what is c.AT_END:
        return lambda text, at: at == len(text) or (at == len(text) - 1 and text[at] == "\n")
    wanted = {c.AT_BOUNDARY: True, c.AT_NON_BOUNDARY: False}[what]
    return lambda text, at: (word(text, at - 1) != word(text, at)) == wanted


def hostile(twin: PatternTwin, n: int) -> Iterator[str]:
    """Yield texts of about n pieces that make a pattern take something back as often as it can."""
    seen = set()
    for text in _hostile(twin, n):
        if text and text not in seen:
            seen.add(text)
            yield text


def _hostile(twin: PatternTwin, n: int) -> Iterator[str]:
    for sign in _SIGNS:
        yield sign * n
    whole = _sample(twin.tree, twin.flags)
    yield whole * n
    yield whole[:-1] * n
    for prefix, bodies, rest in _repeats(twin.tree, twin.flags, ""):
        for at, body in enumerate(bodies):
            for tail in ("", "\0", rest[:-1]):
                yield prefix + body * n + tail
            yield (prefix + body) * n
            yield prefix * n + body * n
            for other in bodies[:at]:
                yield prefix + (body + other) * n
        yield (prefix + rest[:-1]) * n


def _repeats(tree: Any, flags: int, prefix: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield (what leads to it, what it repeats in several ways, what follows) of every repeat."""
    nodes = list(tree)
    for at, (op, value) in enumerate(nodes):
        lead, rest = prefix + _sample(nodes[:at], flags), _sample(nodes[at + 1 :], flags)
        if op in _REPEATS:
            if value[1] is c.MAXREPEAT or int(value[1]) > 8:
                bodies = {_sample(value[2], flags, choice) for choice in range(3)} - {""}
                # What its neighbour takes as well, if it does: whose is it?
                bodies |= {sign for sign in rest[:1] + lead[-1:] if _takes(value[2], flags, sign)}
                yield lead, sorted(bodies), rest
            yield from _repeats(value[2], flags, lead)
        elif op is c.BRANCH:
            for way in value[1]:
                yield from _repeats(way, flags, lead)
        elif op is c.SUBPATTERN:
            yield from _repeats(value[3], (flags | value[1]) & ~value[2], lead)
        elif op is c.ATOMIC_GROUP:
            yield from _repeats(value, flags, lead)
        elif op in (c.ASSERT, c.ASSERT_NOT):
            yield from _repeats(value[1], flags, lead)


def _takes(body: Any, flags: int, sign: str) -> bool:
    return _is_sign(body) and accepting(_sign(body), flags)(sign)


def _sample(tree: Any, flags: int, choice: int = 0) -> str:
    """Return a short text that a pattern matches; other choices, another where there is one."""
    out = ""
    for op, value in tree:
        if op is c.LITERAL:
            out += chr(value)
        elif op in (c.NOT_LITERAL, c.ANY, c.IN):
            literals = [chr(w) for k, w in value if k is c.LITERAL] if op is c.IN else []
            accepts = accepting((op, value), flags)
            fitting = [sign for sign in (*_SIGNS, *literals) if accepts(sign)] or ["?"]
            out += fitting[choice % len(fitting)]
        elif op is c.BRANCH:
            out += _sample(value[1][choice % len(value[1])], flags, choice)
        elif op is c.SUBPATTERN:
            out += _sample(value[3], flags, choice)
        elif op is c.ATOMIC_GROUP:
            out += _sample(value, flags, choice)
        elif op in _REPEATS:
            out += _sample(value[2], flags, choice) * (value[0] or choice % 2)
    return out
