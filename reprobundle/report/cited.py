"""Say how a work is to be cited, as its author states it."""

from __future__ import annotations

from reprobundle.format.citation import Citation


def citation_rows(citation: Citation) -> list[tuple[str, str]]:
    """Return the rows of a table of facts; none where nothing is stated."""
    rows = (
        ("cite as", cite_as(citation)),
        ("DOI", citation.doi_url),
        ("licence", ", ".join(citation.licenses)),
        ("source", citation.repository or citation.url),
    )
    return [(name, said) for name, said in rows if said]


def cite_as(citation: Citation) -> str:
    """Return the work in one line: who, what, which version, when."""
    who = "; ".join(author.name for author in citation.authors)
    what = citation.title
    if citation.version:
        what += f", version {citation.version}"
    if citation.released:
        what += f" ({citation.released})"
    return ": ".join(part for part in (who, what.removeprefix(", version ")) if part)
