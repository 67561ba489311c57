"""Take the names of the author's account and machine out of what we write.

Home folders become ``~``, account names ``{user}``, host names ``{host}``: the same on
both sides, so that two records still compare. A name may be an ordinary word (an
account called ``data``), so it is replaced only where it stands as one: in an absolute
path, before or behind an ``@``. Files and output of the user's own are never changed.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from reprobundle.format.record import Record
from reprobundle.run.paths_in_text import replace_all

# Names that everybody has tell nothing.
_COMMON = frozenset(
    {"root", "user", "admin", "runner", "ubuntu", "nobody", "localhost", "home", "tmp"}
)
_LEAST = 3
_ABSOLUTE = re.compile(r"(?:(?<![\w.~}])|(?<=\{tmp\}))/[^\s'\":,()]+")


@dataclass(frozen=True)
class Names:
    """What is personal about this account and machine.

    Attributes:
        user: Account name.
        host: Name of the machine.
        home: Home folder.
    """

    user: str
    host: str
    home: str

    @classmethod
    def here(cls, variables: Mapping[str, str] = os.environ) -> Names:
        """Return the names of this process's own account and machine."""
        home = Path.home()
        user = variables.get("USER") or variables.get("LOGNAME") or home.name
        return cls(user=user, host=platform.node(), home=str(home))

    def hidden(self, text: str) -> str:
        """Return `text` with the names replaced."""
        if self.home not in ("", "/"):
            text = replace_all(text, [(self.home, "~")])
        return self.without_user(self.without_host(text))

    def without_host(self, text: str) -> str:
        """Return `text` with the machine's name replaced."""
        for host in dict.fromkeys((self.host, self.host.partition(".")[0])):
            if _tells(host) and host in text:
                text = _host(host).sub("{host}", text)
        return text

    def without_user(self, text: str) -> str:
        """Return `text` with the account's name replaced where it stands as one."""
        if _tells(self.user) and self.user in text:
            return _user(text, self.user)
        return text


def _tells(name: str) -> bool:
    return len(name) >= _LEAST and name.lower() not in _COMMON


def _host(name: str) -> re.Pattern[str]:
    word = re.escape(name)
    if re.search(r"[\d.-]", name):
        return re.compile(rf"(?<![\w.-]){word}(?![\w-])")
    return re.compile(rf"(?<=@){word}(?![\w-])|(?<=//){word}(?![\w-])")


def _user(text: str, name: str) -> str:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?=@)", "{user}", text)
    return _ABSOLUTE.sub(lambda path: word.sub("{user}", path[0]), text)


def without_names(record: Record, hide: list[tuple[str, str]], names: Names) -> Record:
    """Return `record` without the names of the account and the machine, in any field.

    Names of files below the project stay: they are the author's own and members are
    found by them. The command has placeholders that a replay can read back.

    Args:
        record: As assembled.
        hide: Pairs of path and stand-in, such as the scratch folder and ``{project}``.
        names: Of this machine.
    """

    def hidden(text: str) -> str:
        return names.hidden(replace_all(text, hide))

    changes = {
        name: mapped(getattr(record, name), hidden)
        for name in record.__struct_fields__
        if name not in _KEPT
    }
    # Where a file lay is what a replay looks for: only what names somebody goes.
    changes["reads"] = mapped(record.reads, names.hidden)
    return msgspec.structs.replace(record, **changes)


# Fields of a record without a text that could name a place, and those of which files
# below the project or the arguments are told by name.
_KEPT = frozenset(
    {
        "schema",
        "bundle",
        "tool",
        "command",
        "reads",
        "sources",
        "outputs",
        "members",
        "withheld",
    }
)
_MEMBERS = frozenset({"path", "member"})


def mapped(value: object, change: Callable[[str], str]) -> object:
    """Return `value` with every text in it changed, but the names of members."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(mapped(one, change) for one in value)
    if isinstance(value, dict):
        return {name: mapped(one, change) for name, one in value.items()}
    if isinstance(value, msgspec.Struct):
        changes = {
            name: mapped(getattr(value, name), change)
            for name in value.__struct_fields__
            if name not in _MEMBERS
        }
        return msgspec.structs.replace(value, **changes)
    return value
