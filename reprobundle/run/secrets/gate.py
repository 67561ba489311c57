"""Let nothing sensitive into a bundle but what its author allowed by kind and place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from reprobundle.errors import BadCallError, SensitiveContentError
from reprobundle.format.record import Remark
from reprobundle.format.writer import Source
from reprobundle.run.project import Stage
from reprobundle.run.secrets.assignments import PASSWORD, SECRET
from reprobundle.run.secrets.drawn import DRAWN
from reprobundle.run.secrets.scan import (
    HOME,
    PERSONAL,
    Remembered,
    Sensitive,
    scan_bytes,
    scan_file,
)
from reprobundle.run.secrets.shapes import SHAPES

KINDS = frozenset(
    {*(shape.kind for shape in SHAPES), SECRET, PASSWORD, DRAWN, PERSONAL}
)
MOST_NAMED = 8
# The remark about a place that was let through.
ALLOWED = "sensitive-allowed"
ARGUMENTS = "command"


class Gate:
    """What the author allows, and what was let through because of it.

    Attributes:
        admitted: Sensitive places that are in the bundle because they were allowed.
        with_home: Files that name the author's home folder.
    """

    def __init__(self, allowed: Iterable[str], *, home: str = "") -> None:
        self._allowed = [_parsed(text) for text in allowed]
        # Below /root everybody's home is the same and tells nothing.
        self._home = b"" if home in ("", "/", "/root") else home.encode()
        # The project is searched before the run and, as part of all, before sealing.
        self._scan = Remembered()
        self.admitted: list[Sensitive] = []
        self.with_home: list[Sensitive] = []

    def check_project(
        self,
        stage: Stage,
        argv: Sequence[str],
        *,
        withheld: Iterable[str],
        limit_bytes: int,
    ) -> None:
        """Refuse at once, before the command runs, what is in the project already.

        Args:
            stage: The project's files.
            argv: The command.
            withheld: Files whose content stays out.
            limit_bytes: Larger files may be left out; they are scanned at the end.

        Raises:
            SensitiveContentError: Something is not allowed.
        """
        found = scan_bytes(ARGUMENTS, _settings_of(argv))
        for name in sorted({*stage.names} - {*withheld}):
            if stage.path(name).stat().st_size <= limit_bytes:
                found += scan_file(name, stage.path(name), scan=self._scan)
        self._admit(found)

    def check_sources(self, sources: Iterable[Source]) -> None:
        """Refuse what is about to be written and was not allowed.

        Raises:
            SensitiveContentError: Something is not allowed.
        """
        found: list[Sensitive] = []
        for source in sources:
            path = place_of(source.path)
            if isinstance(source.content, Path):
                found += scan_file(
                    path, source.content, home=self._home, scan=self._scan
                )
            else:
                found += scan_bytes(path, source.content)
        self._admit(found)

    def _admit(self, found: Sequence[Sensitive]) -> None:
        homes = [place for place in found if place.kind == HOME]
        rest = [place for place in dict.fromkeys(found) if place.kind != HOME]
        refused = [place for place in rest if not self._is_allowed(place)]
        if refused:
            raise _refusal(refused)
        self.admitted = list(dict.fromkeys([*self.admitted, *rest]))
        self.with_home = list(dict.fromkeys([*self.with_home, *homes]))

    def _is_allowed(self, place: Sensitive) -> bool:
        return any(
            kind in ("", place.kind) and path == place.path
            for kind, path in self._allowed
        )

    def remarks(self) -> Iterator[Remark]:
        """Yield what the record says about what was let through."""
        for place in self.admitted:
            yield Remark(
                id=ALLOWED,
                severity="gap",
                where=_where(place),
                text=f"what looks like {_words(place)} here was allowed",
            )
        for place in self.with_home:
            yield Remark(
                id="home-path",
                severity="gap",
                where=_where(place),
                text="the home folder of the machine it ran on stands in this file",
            )


def place_of(member: str) -> str:
    """Return the name by which a user knows a member: without our own folders."""
    group, _, rest = member.partition("/")
    if group in ("project", "inputs"):
        return rest
    return rest.partition("/")[2] if group == "runs" else member


def _parsed(text: str) -> tuple[str, str]:
    kind, separator, path = text.partition("@")
    if separator and kind in KINDS:
        return kind, path.removeprefix("./")
    if separator and "/" not in kind and "." not in kind:
        raise BadCallError(
            f"--allow-sensitive {text!r}: there is no kind {kind!r}",
            advice=f"choose from {', '.join(sorted(KINDS))}",
        )
    return "", text.removeprefix("./")


def _settings_of(argv: Sequence[str]) -> bytes:
    """Return the arguments one a line, each option with the value behind it."""
    lines = list(argv)
    for option, value in itertools.pairwise(argv):
        if option.startswith("--") and "=" not in option and not value.startswith("-"):
            lines.append(f'{option}="{value}"')
    return "\n".join(lines).encode(errors="replace")


def _where(place: Sensitive) -> str:
    is_line = place.line and place.path != ARGUMENTS
    return f"{place.path}:{place.line}" if is_line else place.path


def _words(place: Sensitive) -> str:
    return f"a {place.kind}" + (f" ({place.detail})" if place.detail else "")


def _refusal(places: Sequence[Sensitive]) -> SensitiveContentError:
    named = [f"{_where(place)} ({place.kind})" for place in places[:MOST_NAMED]]
    columns = [f"{_where(place)} column {place.detail}" for place in places]
    shown = [
        column if place.detail else name
        for place, name, column in zip(places, named, columns, strict=False)
    ]
    more = len(places) - len(shown)
    rest = f" and {more} more" if more > 0 else ""
    return SensitiveContentError(
        f"{', '.join(shown)}{rest}: looks like secrets or personal data, "
        "and would be in the bundle for everybody to read",
        places=tuple(f"{place.kind}@{place.path}" for place in places),
        advice=f"take it out, or choose --exclude PATH, --hash-only PATH, --stand-in "
        f"PATH=SAMPLE, or --allow-sensitive {places[0].kind}@{places[0].path}",
    )
