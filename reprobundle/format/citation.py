"""How a work is cited: what its author states about it, and where that is kept.

A citation is stated, never observed. It lies in the reference's record among the
stated facts, so it is sealed with everything else. A DOI that is known only later can
not be added without another bundle id; whoever shows the bundle names it then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from reprobundle.errors import BadCallError
from reprobundle.format.record import Fact, FactValue

DOI_FACT = "stated.doi"
_TOP = "stated.citation."
# Source: citation-file-format 1.2.0, definition "doi", but for the letters that
# only a registrant's own suffix may hold.
_DOI = re.compile(r"10\.[0-9]{4,9}(\.[0-9]+)*/[!-~]+")
_DOI_PREFIX = re.compile(r"(https?://(dx\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
_LONGEST_DOI = 300
_ORCID = re.compile(r"(.*\S)\s*<(https://orcid\.org/[0-9X-]{19})>")


class Author(NamedTuple):
    """One author: the whole name, and the ORCID as a URL or nothing."""

    name: str
    orcid: str = ""

    def __str__(self) -> str:
        return f"{self.name} <{self.orcid}>" if self.orcid else self.name


class Citation(NamedTuple):
    """What is to be cited; empty where nobody stated it.

    Attributes:
        title: Of the work.
        authors: In order.
        doi: Without a prefix, such as ``10.5281/zenodo.1234``.
        version: Of the work.
        released: Day of release, ``YYYY-MM-DD``.
        licenses: SPDX identifiers; several mean that the reader may choose.
        url: Where the work is shown.
        repository: Where its source is.
    """

    title: str = ""
    authors: tuple[Author, ...] = ()
    doi: str = ""
    version: str = ""
    released: str = ""
    licenses: tuple[str, ...] = ()
    url: str = ""
    repository: str = ""

    @property
    def doi_url(self) -> str:
        """The DOI as a link; empty without one."""
        return f"https://doi.org/{self.doi}" if self.doi else ""


def parse_doi(text: str) -> str:
    """Return a DOI without its prefix, from any of the usual ways to write it.

    Raises:
        BadCallError: It is none.
    """
    doi = _DOI_PREFIX.sub("", text.strip(), count=1)
    if len(doi) > _LONGEST_DOI or not _DOI.fullmatch(doi):
        raise BadCallError(
            f"{text[:80]!r} is no DOI",
            advice="write it like 10.5281/zenodo.1234567",
        )
    return doi


def citation_facts(citation: Citation, source: str) -> dict[str, Fact]:
    """Return the facts that keep `citation` in a record; what is empty has none."""
    values: dict[str, FactValue] = {
        f"{_TOP}title": citation.title,
        f"{_TOP}authors": tuple(map(str, citation.authors)),
        f"{_TOP}version": citation.version,
        f"{_TOP}released": citation.released,
        f"{_TOP}license": citation.licenses,
        f"{_TOP}url": citation.url,
        f"{_TOP}repository": citation.repository,
        DOI_FACT: citation.doi,
    }
    return {
        name: Fact(value=value, source=source)
        for name, value in values.items()
        if value
    }


def citation_of(facts: Mapping[str, Fact]) -> Citation:
    """Return what the facts of a record state; an empty citation if nothing."""
    return Citation(
        title=_text(facts, f"{_TOP}title"),
        authors=tuple(map(_author, _texts(facts, f"{_TOP}authors"))),
        doi=_doi(_text(facts, DOI_FACT)),
        version=_text(facts, f"{_TOP}version"),
        released=_text(facts, f"{_TOP}released"),
        licenses=_texts(facts, f"{_TOP}license"),
        url=_text(facts, f"{_TOP}url"),
        repository=_text(facts, f"{_TOP}repository"),
    )


def with_doi(citation: Citation, doi: str) -> Citation:
    """Return `citation` with a DOI that was stated beside it.

    Raises:
        BadCallError: It is none, or `citation` states another one.
    """
    if not doi:
        return citation
    wanted = parse_doi(doi)
    if citation.doi and citation.doi.lower() != wanted.lower():
        raise BadCallError(
            f"the DOI is stated twice, once as {citation.doi} and once as {wanted}",
            advice="state the one that the work has",
        )
    return citation._replace(doi=wanted)


def _author(text: str) -> Author:
    match = _ORCID.fullmatch(text)
    return Author(match[1], match[2]) if match else Author(text)


def _doi(text: str) -> str:
    """Return a DOI that a stranger's record states, or nothing if it is none."""
    try:
        return parse_doi(text) if text else ""
    except BadCallError:
        return ""


def _text(facts: Mapping[str, Fact], name: str) -> str:
    fact = facts.get(name)
    value = None if fact is None else fact.value
    return value if isinstance(value, str) else ""


def _texts(facts: Mapping[str, Fact], name: str) -> tuple[str, ...]:
    fact = facts.get(name)
    value = None if fact is None else fact.value
    return value if isinstance(value, tuple) else ()
