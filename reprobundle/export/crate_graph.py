"""What an RO-Crate says: its files, its runs, its people, its verdict.

Sources: RO-Crate 1.3, https://w3id.org/ro/crate/1.3; Process Run Crate 0.6,
https://w3id.org/ro/wfrun/process/0.6; Package URL,
https://github.com/package-url/purl-spec.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from reprobundle import __version__
from reprobundle.export.actions import (
    COMPLETED,
    FAILED,
    Action,
    run_actions,
    verification_error,
)
from reprobundle.export.crate_entities import TERMS, Entities, Properties, known
from reprobundle.export.tree import BUNDLE_NAME, REPORT_NAME, Item
from reprobundle.export.verified import Verified, rfc3339
from reprobundle.export.writing import Written
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.report.artifact import programs
from reprobundle.report.vouched import assurance_words

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

PROFILE = "https://w3id.org/ro/wfrun/process/0.6"
CONTEXT = "https://w3id.org/ro/terms/workflow-run/context"
_NOBODY = "#not-named"
_STATUS_NAMES = {COMPLETED: "completed", FAILED: "failed"}
_PYTHON_PACKAGES = ("torch", "numpy")
_HOMEPAGES = {
    "python": "https://www.python.org/",
    "torch": "https://pytorch.org/",
    "numpy": "https://numpy.org/",
}


def describe(
    crate: ROCrate, what: Verified, content: Sequence[Item], written: Sequence[Written]
) -> None:
    """Fill an empty crate.

    Args:
        crate: The crate.
        what: The verified bundle.
        content: Every file that lies in it but the metadata.
        written: The same as they were written.
    """
    _Builder(crate, what).fill(content, written)


class _Builder:
    """Fills one crate with entities."""

    def __init__(self, crate: ROCrate, what: Verified) -> None:
        self._crate = crate
        self._what = what
        self._entities = Entities(crate)

    def fill(self, content: Sequence[Item], written: Sequence[Written]) -> None:
        """Describe the files, the runs, the people and the verdict."""
        self._crate.metadata.extra_contexts.append(CONTEXT)
        self._crate.metadata.extra_terms.update(TERMS)
        for item, done in zip(content, written, strict=True):
            self._entities.add_file(item, done)
        self._entities.add(
            _NOBODY,
            "Person",
            name="not named",
            description="The record does not say who started the run, and no listed "
            "key signed it.",
        )
        runs = [self._run(action) for action in run_actions(self._what)]
        self._root([*runs, self._verification()])

    # --- actions

    def _run(self, action: Action) -> str:
        read = [
            self._entities.reference(f"{action.id}-read", at, one)
            for at, one in enumerate(action.read, start=1)
        ]
        made = [
            self._entities.reference(f"{action.id}-made", at, one)
            for at, one in enumerate(action.made, start=1)
        ]
        set_for_it = [
            {
                "@id": self._entities.add(
                    f"{action.id}-variable-{quote(name)}",
                    "PropertyValue",
                    name=name,
                    value=value,
                )
            }
            for name, value in sorted(action.record.command.environment.items())
        ]
        return self._entities.add(
            action.id,
            "CreateAction",
            name=action.name,
            description=action.description,
            agent=self._agents(action.signers),
            instrument={"@id": self._instrument(action)},
            object=read,
            result=made,
            environment=set_for_it,
            startTime=_zoned(action.started),
            endTime=_zoned(action.ended),
            actionStatus=self._status(action.status),
            exitStatus=action.record.outcome.exit_status,
            error=action.error,
        )

    def _agents(self, signers: Sequence[str]) -> object:
        people = [
            {
                "@id": self._entities.add(
                    f"#signer-{number}",
                    "Person",
                    name=name,
                    description="Signed with a key that the list of signers gives "
                    "this name; that they started the run is their statement.",
                )
            }
            for number, name in enumerate(self._all_signers(), start=1)
            if name in signers
        ]
        return people or {"@id": _NOBODY}

    def _status(self, status: str) -> Properties:
        name = _STATUS_NAMES[status]
        return {"@id": self._entities.add(status, "ActionStatusType", name=name)}

    def _all_signers(self) -> list[str]:
        names = (one.signer for one in self._what.report.signatures)
        return sorted({name for name in names if name})

    def _instrument(self, action: Action) -> str:
        """Add what was executed, in the environment it was executed in."""
        record, files = action.record, self._entities.files
        sources = [f"project/{name}" for name in programs(record)]
        return self._entities.add(
            f"{action.id}-program",
            "SoftwareApplication",
            name=" ".join(record.command.argv[:4]) or "no command",
            description=f"the command of claim {record.claim}",
            version=_fact(action, "git.commit") or self._what.bundle.id,
            url=self._what.citation.repository or f"urn:blake3:{self._what.bundle.id}",
            hasPart=[{"@id": files[name]} for name in sources if name in files],
            softwareRequirements=[
                {"@id": self._software(name, version)}
                for name in _HOMEPAGES
                if (version := _fact(action, f"{name}.version"))
            ],
        )

    def _software(self, name: str, version: str) -> str:
        kind = "pypi" if name in _PYTHON_PACKAGES else "generic"
        identifier = f"pkg:{kind}/{name}@{quote(version, safe='')}"
        return self._entities.add(
            identifier,
            "SoftwareApplication",
            name=name,
            version=version,
            url=_HOMEPAGES[name],
        )

    def _verification(self) -> str:
        report, at = self._what.report, rfc3339(self._what.at)
        error = verification_error(self._what)
        identifier = f"pkg:pypi/reprobundle@{__version__}"
        tool = self._entities.add(
            identifier,
            "SoftwareApplication",
            name="reprobundle",
            version=__version__,
            url=identifier,
        )
        verdict = self._entities.add(
            "#verdict",
            "PropertyValue",
            name="verdict",
            propertyID="reprobundle verdict (spec.md, section 8.2)",
            value=report.verdict,
            description="; ".join(report.reasons) or "no reason against it",
        )
        has_bundle = BUNDLE_NAME in self._entities.files
        subject = BUNDLE_NAME if has_bundle else MANIFEST_PATH
        return self._entities.add(
            "#verification",
            "CreateAction",
            name=f"verify on {at[:10]}: {report.verdict}",
            description=f"reprobundle verify {report.file}; exit status "
            f"{report.exit_status}; assurance: {assurance_words(report.assurance)}; "
            f"not checked: {', '.join(report.not_checked) or 'nothing'}",
            agent={"@id": _NOBODY},
            instrument={"@id": tool},
            object=[{"@id": subject}],
            result=[{"@id": REPORT_NAME}, {"@id": verdict}],
            endTime=_zoned(at),
            actionStatus=self._status(FAILED if error else COMPLETED),
            exitStatus=report.exit_status,
            error=error,
        )

    # --- the whole

    def _root(self, actions: Sequence[str]) -> None:
        what, root = self._what, self._crate.root_dataset
        citation, intent = what.citation, what.sealed.policy.intent
        profile = self._entities.add(
            PROFILE,
            ["CreativeWork", "Profile"],
            name="Process Run Crate",
            version="0.6",
        )
        properties: Properties = {
            "conformsTo": {"@id": profile},
            "name": citation.title or what.report.file.removesuffix(".rpb.zip"),
            "description": f"{intent.purpose or 'The author stated no purpose.'} "
            f"Verified on {rfc3339(what.at)[:10]}: {what.report.verdict}.",
            "datePublished": citation.released or rfc3339(what.at)[:10],
            "license": self._license(),
            "identifier": self._identifiers(),
            "mentions": [{"@id": one} for one in actions],
            "author": self._authors(),
            "version": citation.version,
            "url": citation.url or citation.repository,
        }
        if citation.doi:
            properties["cite-as"] = citation.doi_url
        for key, value in known(properties).items():
            root[key] = value

    def _identifiers(self) -> list[Properties]:
        bundle, doi = self._what.bundle.id, self._what.citation.doi
        found = [
            self._entities.add(
                "#bundle-id",
                "PropertyValue",
                name="bundle id",
                propertyID="BLAKE3 digest of manifest.json",
                value=bundle,
            )
        ]
        if doi:
            found.append(
                self._entities.add(
                    self._what.citation.doi_url,
                    "PropertyValue",
                    name="DOI",
                    propertyID="https://registry.identifiers.org/registry/doi",
                    value=f"doi:{doi}",
                    url=self._what.citation.doi_url,
                )
            )
        return [{"@id": one} for one in found]

    def _license(self) -> object:
        licenses = [
            {
                "@id": self._entities.add(
                    f"https://spdx.org/licenses/{name}",
                    "CreativeWork",
                    name=name,
                    description=f"the licence with the SPDX identifier {name}",
                )
            }
            for name in self._what.citation.licenses
        ]
        if not licenses:
            return "No licence is stated; ask the authors."
        return licenses

    def _authors(self) -> list[Properties]:
        return [
            {
                "@id": self._entities.add(
                    author.orcid or f"#author-{number}", "Person", name=author.name
                )
            }
            for number, author in enumerate(self._what.citation.authors, start=1)
        ]


def _zoned(time: str) -> str:
    """Return a time of RFC 3339 with its offset written out."""
    return time.removesuffix("Z") + "+00:00" if time.endswith("Z") else time


def _fact(action: Action, name: str) -> str:
    fact = action.record.environment.get(name)
    return "" if fact is None or fact.value is None else str(fact.value)
