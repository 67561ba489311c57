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

from reprobundle.format.record import ErrorReport, Fact, Record
from reprobundle.run.facts import replace_all

# Names that everybody has tell nothing.
_COMMON = frozenset(
    {"root", "user", "admin", "runner", "ubuntu", "nobody", "localhost", "home", "tmp"}
)
_LEAST = 3
_ABSOLUTE = re.compile(r"(?<![\w.~}])/[^\s'\":,()]+")


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
        for host in dict.fromkeys((self.host, self.host.partition(".")[0])):
            if _tells(host) and host in text:
                text = _host(host).sub("{host}", text)
        if _tells(self.user) and self.user in text:
            text = _user(text, self.user)
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
    """Return `record` without the names of the account and the machine.

    Args:
        record: As assembled.
        hide: Pairs of path and stand-in, such as the scratch folder and ``{project}``.
        names: Of this machine.
    """

    def hidden(text: str) -> str:
        return names.hidden(replace_all(text, hide))

    outcome = record.outcome
    return msgspec.structs.replace(
        record,
        environment={
            name: _fact(fact, hidden) for name, fact in record.environment.items()
        },
        processes=tuple(
            msgspec.structs.replace(one, argv=tuple(map(hidden, one.argv)))
            for one in record.processes
        ),
        remarks=tuple(
            msgspec.structs.replace(one, where=hidden(one.where), text=hidden(one.text))
            for one in record.remarks
        ),
        outcome=msgspec.structs.replace(
            outcome,
            error=_error(outcome.error, hidden) if outcome.error else None,
            stop_detail=hidden(outcome.stop_detail),
        ),
    )


def _fact(fact: Fact, hidden: Callable[[str], str]) -> Fact:
    value = fact.value
    if isinstance(value, str):
        value = hidden(value)
    elif isinstance(value, tuple):
        value = tuple(map(hidden, value))
    return msgspec.structs.replace(fact, value=value, unknown=hidden(fact.unknown))


def _error(error: ErrorReport, hidden: Callable[[str], str]) -> ErrorReport:
    return msgspec.structs.replace(
        error,
        message=hidden(error.message),
        masked=hidden(error.masked),
        where=hidden(error.where),
        traceback=hidden(error.traceback),
    )
