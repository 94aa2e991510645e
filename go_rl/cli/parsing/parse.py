"""`parse`: the words of a command line as a command of the table and its options."""

from __future__ import annotations

import io
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from go_rl.api.options import Cost, Decide, HardwareChoice, WeightsChoice
from go_rl.cli.exit_codes import EXIT_CODES, OK
from go_rl.cli.parsing.help_text import plain_output
from go_rl.cli.table import COMMANDS, GROUPS, VARIANTS, Command, members
from go_rl.core import GoRLError, ProblemError, decision_names
from go_rl.core.errors import nearest

PAGES = Path(__file__).parents[2] / "docs"
"""Folder of the pages that help texts and messages name as ``docs/NAME.md``; the wheel has it."""
DESCRIPTION = (
    f"Partition, place, schedule and fuse neural networks, with proven bounds. {EXIT_CODES} "
    f"Pages named docs/NAME.md lie in {PAGES}."
)
HELP = ("-h", "--help")
MOST_WORDS = max(len(command.words.split()) for command in COMMANDS)
STYLE = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
PREFIXED = (tyro.conf.FlagCreatePairsOff,)
"""For configurations whose parts have fields of one name."""
NAMED_TYPES: dict[Any, str] = {
    Cost: "NAME",
    Decide: "NAME,NAME",
    HardwareChoice: "NAME|FILE",
    WeightsChoice: "NAME|FILE",
}
"""Metavar of what Python takes in several forms, and the command line by name."""
DecisionSets = tuple[tuple[str, ...], ...]
"""Sets of decisions, each by its names."""
SWITCH = {"auto": None, "on": True, "off": False}
"""Words of ``bool | None``."""
_FLAG = re.compile(r"--[a-z][a-z0-9.-]*")
_EMPTY = re.compile(_FLAG.pattern + "=")
_BOX = re.compile(r"\x1b\[[0-9;]*m|^[│╭╰] ?|[│╮╯]$", re.MULTILINE)
"""Colours and borders; there are none where the encoding is narrow, but blanks."""
_RULE = re.compile(r"[─-]{4,}")
_PLAINER = (
    (re.compile(r"invalid literal for int\(\) with base 10: "), "must be a whole number, not "),
    (re.compile(r"could not convert string to float: "), "must be a number, not "),
    (re.compile(r"Could not find valid parse for arguments: \[(.*)\]"), r"cannot be read from \1"),
)
_CHOICE = re.compile(r"invalid choice '(.*)' for argument '(.*)'\. Expected one of \((.*)\)")
_UNKNOWN = re.compile(r"no option (--[^\s;]+)")
_VALUE = re.compile(r"Missing value for argument '(.*?)'\..*")
_UNION = re.compile(r"no type matching .* - <class '(?:int|float|str)'>: ")
_FIRST = re.compile(
    r"(?:(?P<part>[a-z][a-z -]*): )?(?P<field>[a-z]\w*)"
    r"(?= (?:must|needs|has no|names|runs|is|are)\b)"
)
_NAMES = re.compile(r"(?<![\w'.])(?<!: )[a-z]+(?:_[a-z]+)+(?![\w':=])")
"""The option that a message is about, and others that it names, as fields of configurations."""
_NAME = re.compile(r"^ {4}(?! )(.*?) *$", re.MULTILINE)
"""A missing argument; what explains it is indented further."""


class UsageError(GoRLError):
    """A command, a flag or its value is unknown or missing; the message is one line."""


def parse(argv: Sequence[str]) -> tuple[Command, Any]:
    """Return the command that the words name, and its options.

    Raises:
        UsageError: a word is unknown (the nearest is named), missing, or has no such value.
        SystemExit: help was asked for, and is printed.
    """
    if not argv:
        raise UsageError(f"name a command: {', '.join(GROUPS)}; go-rl --help explains them")
    if argv[0] in HELP:
        _explain("go-rl COMMAND", DESCRIPTION, COMMANDS)
    command, rest = _command_of(argv)
    return command, _options(command, rest)


@contextmanager
def naming_flags(argv: Sequence[str]) -> Iterator[None]:
    """Let an error about an option call it as the command line does: ``--bound-seconds`` and not
    ``bound_seconds``, the name of its field."""
    try:
        yield
    except UsageError:
        raise
    except GoRLError as error:
        said = str(error)
        first, names = _FIRST.match(said), _NAMES.findall(said)
        if first is None and not names:
            raise
        command, rest = _command_of(argv)
        flags = _flags(command, command.kind(rest))
        if first:
            part, field = first["part"] or "", first["field"]
            asked = [f"--{each}{field}".replace("_", "-") for each in ("", f"{part}.")]
            flag = next((each for each in asked if each in flags), field)
            said = f"{said[: first.start('field')]}{flag}{said[first.end() :]}"
        for name in names:
            if (flag := f"--{name.replace('_', '-')}") in flags:
                said = re.sub(rf"(?<![\w-]){name}(?!\w)", flag, said)
        raise GoRLError(said) from error


def _command_of(argv: Sequence[str]) -> tuple[Command, list[str]]:
    first, *rest = argv
    if first not in GROUPS:
        raise UsageError(f"no command {first!r}{nearest(first, GROUPS)} Commands: "
                         f"{', '.join(GROUPS)}")  # fmt: skip
    known = {command.words: command for command in members(first)}
    for count in range(min(len(argv), MOST_WORDS), 0, -1):
        if (words := " ".join(argv[:count])) in known:
            return known[words], list(argv[count:])
    if rest and rest[0] in HELP:
        _explain(f"go-rl {first} COMMAND", "", members(first))
    second = rest[0] if rest else ""
    choices = [words.partition(" ")[2] for words in known]
    end = nearest(second, choices) if second else "."
    known_words = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
    raise UsageError(f"go-rl {first} takes {known_words}, not {second!r}{end}")


def _explain(usage: str, description: str, commands: Sequence[Command]) -> None:
    lines = [f"usage: {usage} [OPTIONS]", ""]
    if description:
        lines += [*textwrap.wrap(description, 100), ""]
    for command in commands:
        indent = " " * 20
        lines += textwrap.wrap(command.summary, 100, initial_indent=f"  {command.words:18}",
                               subsequent_indent=indent)  # fmt: skip
    first = commands[0].words
    sys.stdout.write("\n".join([*lines, "", f"go-rl {first} --help lists the options of one.\n"]))
    raise SystemExit(OK)


def _options(command: Command, argv: Sequence[str]) -> Any:
    _refuse_empty(command, argv)
    kind = command.kind(argv)
    errors = io.StringIO()
    try:
        with redirect_stderr(errors):
            return _read(command, kind, argv)
    except SystemExit as leaving:
        if leaving.code in (None, OK):
            raise
        said = _sentence(errors.getvalue(), _flags(command, kind))
        if (unknown := _UNKNOWN.match(said)) and (words := _chosen_by(command, unknown[1])):
            said = f"{unknown[1]} goes with {' or '.join(words)}"
        raise UsageError(f"{said} (go-rl {command.words} --help)") from None
    except GoRLError:
        if _lost_its_word(command, kind, argv):
            _options(command, ())
        raise


def _refuse_empty(command: Command, argv: Sequence[str]) -> None:
    """No option and no argument may be empty: as a folder, it would be the current one."""
    for before, word in zip((command.words, *argv), argv, strict=False):
        flag = before if not word else word[:-1] if _EMPTY.fullmatch(word) else ""
        if flag:
            raise UsageError(f"the argument behind {flag} is empty "
                             f"(go-rl {command.words} --help)")  # fmt: skip


def _lost_its_word(command: Command, kind: type, argv: Sequence[str]) -> bool:
    """Whether the last word is the only one of a flag, and the parser took it for a missing
    argument: with one more word all is well."""
    if len(argv) < 2 or not argv[-2].startswith("--"):
        return False
    with suppress(GoRLError, SystemExit), redirect_stderr(io.StringIO()):
        _read(command, kind, [*argv, argv[-1]])
        return True
    return False


def _chosen_by(command: Command, flag: str) -> list[str]:
    """Words with which the command has a flag; none where it has it without any."""
    having = [words for words in VARIANTS.get(command.words, ())
              if flag in _flags(command, command.kind(words))]  # fmt: skip
    return [] if () in having else [" ".join(words) for words in having]


def _flags(command: Command, kind: type) -> list[str]:
    """All flags that the command's help mentions."""
    shown = io.StringIO()
    with redirect_stdout(shown), suppress(SystemExit):
        _read(command, kind, ["--help"])
    return sorted({*_FLAG.findall(shown.getvalue())})


def _read(command: Command, kind: type, argv: Sequence[str]) -> Any:
    with plain_output():
        return tyro.cli(
            kind,
            args=list(argv),
            prog=f"go-rl {command.words}",
            description=command.summary,
            config=style(kind),
            registry=constructors(),
        )


def style(kind: type) -> tuple[Any, ...]:
    """Return how the fields of a command's options become flags."""
    return PREFIXED if getattr(kind, "PREFIXED", False) else STYLE


def constructors() -> ConstructorRegistry:
    """Return how the command line reads what Python also takes in other forms."""
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def named(field: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if field.type not in NAMED_TYPES:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=NAMED_TYPES[field.type],
            instance_from_str=lambda words: words[0],
            is_instance=lambda value: value is None or isinstance(value, str),
            str_from_instance=lambda value: [str(value)],
        )

    @registry.primitive_rule
    def decision_sets(field: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if field.type != DecisionSets:
            return None
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar="NAME,NAME [NAME,NAME ...]",
            instance_from_str=_decision_sets,
            is_instance=lambda given: isinstance(given, tuple),
            str_from_instance=lambda sets: [",".join(names) for names in sets],
        )

    @registry.primitive_rule
    def switch(field: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if field.type != bool | None:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="{" + ",".join(SWITCH) + "}",
            instance_from_str=lambda words: SWITCH[words[0]],
            is_instance=lambda value: value in SWITCH.values(),
            str_from_instance=lambda value: [next(w for w, v in SWITCH.items() if v is value)],
            choices=tuple(SWITCH),
        )

    return registry


def _decision_sets(words: list[str]) -> DecisionSets:
    """Read ``placement,schedule,fusion placement``; a ValueError, for tyro, names a wrong one."""
    try:
        return tuple(decision_names(word) for word in words)
    except ProblemError as error:
        raise ValueError(str(error)) from error


def _sentence(message: str, flags: Sequence[str]) -> str:
    """The sentence in the box that the parser prints; a misspelt flag or choice gets the nearest
    one of ``flags``."""
    parts = _RULE.split(_BOX.sub("", message))
    content = textwrap.dedent(next((p for p in parts[1:] if p.strip()), message))
    text = " ".join(content.split()).rstrip(".")
    if text.startswith("Missing from"):
        return f"missing: {', '.join(_NAME.findall(content))}"
    if text.startswith("Unrecognized options: "):
        return _unknown(text.partition(": ")[2].split(", "), flags)
    if match := _CHOICE.search(text):
        word, flag, listed = match.groups()
        choices = [c.strip(" '") for c in listed.split(",") if c.strip(" '") not in ("", "None")]
        return (
            f"{flag}: no choice {word!r}{nearest(word, choices)} Use {', '.join(sorted(choices))}"
        )
    text = _UNION.sub("", _VALUE.sub(_no_value, text).removeprefix("Error parsing "))
    for pattern, words in _PLAINER:
        text = pattern.sub(words, text)
    return text


def _no_value(found: re.Match[str]) -> str:
    """The sentence about a flag without its value, or an argument that is not there."""
    name = found[1]
    if name.startswith("-"):
        return f"{name} needs a value"
    return f"missing: {name.rpartition('.')[2].upper()}"


def _unknown(words: Sequence[str], flags: Sequence[str]) -> str:
    wrong = next((word for word in words if word.startswith("-")), None)
    if wrong is None:
        return f"one argument too many: {words[0]!r}"
    flag = wrong.partition("=")[0]
    return f"no option {flag}{nearest(flag, flags)}".rstrip(".")
