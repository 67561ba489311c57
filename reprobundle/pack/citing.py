"""Read a CITATION.cff file, held to the rules of its published schema.

Source: Citation File Format 1.2.0, https://doi.org/10.5281/zenodo.5171937; its schema
lies in ``cff/``. Files of 1.0 and 1.1 have other rules and are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.format.citation import (
    Author,
    Citation,
    citation_facts,
    parse_doi,
    with_doi,
)
from reprobundle.format.record import Fact
from reprobundle.outputs.text import printable
from reprobundle.pack.stated import PREFIX

if TYPE_CHECKING:
    from yaml import SafeLoader

SOURCE = "stated by the user with pack --citation or --doi"
LIMIT_BYTES = 1 << 20
SCHEMA = Path(__file__).with_name("cff") / "schema-1.2.0.json"
_MOST_AUTHORS = 5000
_ALIAS = object()
_ADVICE = "see https://citation-file-format.github.io"


def read_citation(path: Path) -> Citation:
    """Return what the CITATION.cff file at `path` states.

    Raises:
        BadCallError: It cannot be read, is no YAML, or breaks the schema.
        EnvironmentUnusableError: The package that reads YAML is not installed.
    """
    document = _document(path)
    _check(path, document)
    return Citation(
        title=_line(document.get("title")),
        authors=tuple(map(_author, document["authors"][:_MOST_AUTHORS])),
        doi=_doi(path, document),
        version=_line(document.get("version")),
        released=_line(document.get("date-released")),
        licenses=_licenses(document.get("license")),
        url=_line(document.get("url")),
        repository=_line(document.get("repository-code") or document.get("repository")),
    )


def with_citation(
    facts: Mapping[str, Fact], file: Path | None, doi: str
) -> dict[str, Fact]:
    """Return stated facts with those that keep a citation.

    Args:
        facts: Stated otherwise.
        file: A CITATION.cff file, or None.
        doi: A DOI that is stated beside it, or nothing.

    Raises:
        BadCallError: As `read_citation`, or something is stated twice.
        EnvironmentUnusableError: The package that reads YAML is not installed.
    """
    stated = Citation() if file is None else read_citation(file)
    source = SOURCE if file is None else f"{SOURCE} from {file.name}"
    cited = citation_facts(with_doi(stated, doi), source)
    for name in sorted(facts.keys() & cited.keys()):
        raise BadCallError(
            f"fact {name.removeprefix(PREFIX)!r} is stated twice, with --fact and with "
            "--citation or --doi",
            advice="leave out --fact",
        )
    return {**facts, **cited}


def _document(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            data = stream.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise BadCallError(
            f"cannot read {str(path)!r}: {(error.strerror or str(error)).lower()}",
            advice="name a CITATION.cff file",
        ) from error
    if len(data) > LIMIT_BYTES:
        raise BadCallError(
            f"{str(path)!r} has more than {LIMIT_BYTES:,} bytes", advice=_ADVICE
        )
    document = _yaml(path, data)
    if document is _ALIAS:
        raise BadCallError(
            f"{str(path)!r} uses a YAML alias, and no such file needs one",
            advice="write the value out",
        )
    if not isinstance(document, dict):
        raise BadCallError(
            f"{str(path)!r} holds no keys, expected cff-version, title and authors",
            advice=_ADVICE,
        )
    return document


def _yaml(path: Path, data: bytes) -> object:
    """Return the plain values of a YAML text, in which a date stays a text."""
    try:
        import yaml
    except ImportError as error:
        raise EnvironmentUnusableError(
            "the Python package pyyaml, which reads CITATION.cff, is not installed",
            advice="pip install 'reprobundle[export]'",
        ) from error

    try:
        # A few nested aliases stand for more values than any memory holds.
        if any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(data)):
            return _ALIAS
        return yaml.load(data, _dates_stay_text(yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadCallError(
            f"{str(path)!r} cannot be read as YAML{_place(error)}", advice=_ADVICE
        ) from error


def _dates_stay_text(loader: type[SafeLoader]) -> type[SafeLoader]:
    """Return a loader that takes a date for a text, as JSON and the schema do."""
    resolvers = {
        first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for first, pairs in loader.yaml_implicit_resolvers.items()
    }
    return type("_Loader", (loader,), {"yaml_implicit_resolvers": resolvers})


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f", line {mark.line + 1}"
    problem = getattr(error, "problem", "") or str(error).partition("\n")[0]
    return f"{line}: {printable(problem, longest=120)}"


def _check(path: Path, document: Mapping[str, object]) -> None:
    version = document.get("cff-version")
    if version != "1.2.0":
        raise BadCallError(
            f"{str(path)!r}: cff-version is {printable(str(version), longest=40)!r}, "
            "expected '1.2.0'",
            advice=_ADVICE,
        )
    import jsonschema

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    checker = jsonschema.Draft7Validator(
        schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
    )
    problem = jsonschema.exceptions.best_match(checker.iter_errors(document))
    if problem is not None:
        where = "/".join(map(str, problem.absolute_path)) or "the file"
        raise BadCallError(
            f"{str(path)!r} breaks the schema of CITATION.cff at {where}: "
            f"{printable(problem.message, longest=200)}",
            advice=_ADVICE,
        )


def _author(entry: Mapping[str, object]) -> Author:
    """Return a person, or an entity such as a team."""
    parts = ("given-names", "name-particle", "family-names", "name-suffix")
    name = " ".join(_line(entry[part]) for part in parts if entry.get(part))
    name = name or _line(entry.get("name") or entry.get("alias")) or "anonymous"
    return Author(name, _line(entry.get("orcid")))


def _doi(path: Path, document: Mapping[str, object]) -> str:
    """Return the DOI of the file itself, else the one DOI among its identifiers."""
    own = document.get("doi")
    listed = document.get("identifiers")
    others = [
        one["value"]
        for one in (listed if isinstance(listed, list) else [])
        if one.get("type") == "doi"
    ]
    found = [own] if own else list(dict.fromkeys(others))
    if len(found) > 1:
        raise BadCallError(
            f"{str(path)!r} lists {len(found)} DOIs and states none of them as its own",
            advice="add the key doi with the one to cite",
        )
    return parse_doi(str(found[0])) if found else ""


def _licenses(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(_line(one) for one in values if one)


def _line(value: object) -> str:
    """Return a value as one printable line; empty for none."""
    if value is None:
        return ""
    return printable(re.sub(r"\s+", " ", str(value)).strip(), longest=1000)
