"""A bundle as an RO-Crate: unpacked, with what was run told in JSON-LD.

The graph is built with `rocrate`; contents go past it, so that a bundle of any size is
written once and every byte is compared with its digest.

Sources: RO-Crate 1.3, https://w3id.org/ro/crate/1.3; Process Run Crate 0.6,
https://w3id.org/ro/wfrun/process/0.6.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprobundle import __version__
from reprobundle.errors import EnvironmentUnusableError
from reprobundle.export.actions import (
    COMPLETED,
    FAILED,
    Action,
    Result,
    run_actions,
    verification_error,
)
from reprobundle.export.tree import BUNDLE_NAME, REPORT_NAME, Item, items
from reprobundle.export.verified import Verified, rfc3339
from reprobundle.export.writing import Written, new_tree, write_items, write_text
from reprobundle.report.artifact import programs
from reprobundle.report.json import report_json
from reprobundle.report.vouched import assurance_words

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

METADATA_NAME = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/wfrun/process/0.6"
CONTEXT = "https://w3id.org/ro/terms/workflow-run/context"
TERMS = {
    # BLAKE3 of a file's content, 64 hexadecimal digits; exit status of a process.
    "blake3": "urn:reprobundle:term:blake3",
    "exitStatus": "urn:reprobundle:term:exitStatus",
}
_OLDEST = (1, 3)
_METADATA_BYTES = 1 << 20
_NOBODY = "#not-named"

Properties = dict[str, Any]


def write_ro_crate(
    what: Verified,
    target: Path,
    *,
    with_bundle: bool = False,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write a new RO-Crate, a folder or a ZIP file.

    Args:
        what: The verified bundle.
        target: The folder, or the file if it ends in ``.zip``.
        with_bundle: Put the bundle file into it too.
        progress: Called with the number of bytes just written.

    Raises:
        EnvironmentUnusableError: `rocrate` is missing or too old, or there is no room.
        BadCallError: `target` exists.
        DigestError: Content is not what was sealed.
    """
    crate = _new_crate()
    content = list(items(what, with_bundle=with_bundle))
    needed = sum(item.size_bytes for item in content) + _METADATA_BYTES
    with new_tree(target, needed_bytes=needed) as sink:
        written = list(write_items(sink, content, progress))
        written.append(write_text(sink, REPORT_NAME, report_json(what.report)))
        told = Item(REPORT_NAME, written[-1].size_bytes, "report", _nothing)
        _Builder(crate, what).fill([*content, told], written)
        text = b"".join(piece for _, piece in crate.metadata.stream())
        write_text(sink, METADATA_NAME, text + b"\n")


def _nothing() -> Any:  # noqa: ANN401 — never called: the file is written already
    raise NotImplementedError


def _new_crate() -> ROCrate:
    try:
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise EnvironmentUnusableError(
            "the Python package rocrate is not installed",
            advice="pip install 'reprobundle[export]'",
        ) from error
    crate = ROCrate()
    if tuple(int(part) for part in crate.version.split(".")[:2]) < _OLDEST:
        raise EnvironmentUnusableError(
            f"the installed rocrate writes RO-Crate {crate.version}, 1.3 is needed",
            advice="pip install --upgrade 'reprobundle[export]'",
        )
    return crate


class _Builder:
    """Fills one crate with entities."""

    def __init__(self, crate: ROCrate, what: Verified) -> None:
        self._crate = crate
        self._what = what
        self._files: set[str] = set()
        self._own: set[str] = set()

    def fill(self, content: Sequence[Item], written: Sequence[Written]) -> None:
        """Describe the files, the runs, the people and the verdict."""
        self._crate.metadata.extra_contexts.append(CONTEXT)
        self._crate.metadata.extra_terms.update(TERMS)
        for item, done in zip(content, written, strict=True):
            self._file(item, done)
        self._entity(
            _NOBODY,
            "Person",
            name="not named",
            description="The record does not say who started the run, and no listed "
            "key signed it.",
        )
        runs = [self._run(action) for action in run_actions(self._what)]
        self._root([*runs, self._verification()])

    def _entity(self, identifier: str, kind: str, **properties: object) -> str:
        """Add a contextual entity, once, and return its identifier."""
        from rocrate.model.contextentity import ContextEntity

        if identifier not in self._own:
            self._own.add(identifier)
            known = {
                key: value for key, value in properties.items() if value not in ("", [])
            }
            self._crate.add(
                ContextEntity(self._crate, identifier, {"@type": kind, **known})
            )
        return identifier

    # --- files

    def _file(self, item: Item, done: Written) -> None:
        from rocrate.model.file import File

        properties: Properties = {
            "name": item.name,
            "description": f"{item.role} of the bundle",
            "contentSize": str(done.size_bytes),
            "sha256": done.sha256,
            "blake3": done.blake3,
        }
        kind, _ = mimetypes.guess_type(item.name)
        if kind:
            properties["encodingFormat"] = kind
        original = _original_name(item)
        if original:
            properties["alternateName"] = original
        self._files.add(item.name)
        self._crate.add(File(self._crate, dest_path=item.name, properties=properties))

    def _reference(self, owner: str, number: int, one: Result) -> Properties:
        """Return a reference to a file of the crate, or to what is told about it."""
        if one.member in self._files:
            return {"@id": self._crate.get(_quoted(one.member)).id}
        note = one.note or "not in the crate"
        return {
            "@id": self._entity(
                f"{owner}-{number}",
                "CreativeWork",
                name=one.name,
                description=note,
                contentSize=str(one.size_bytes),
                blake3=one.blake3,
            )
        }

    # --- actions

    def _run(self, action: Action) -> str:
        read = [
            self._reference(f"{action.id}-read", at, one)
            for at, one in enumerate(action.read, start=1)
        ]
        made = [
            self._reference(f"{action.id}-made", at, one)
            for at, one in enumerate(action.made, start=1)
        ]
        set_for_it = [
            {
                "@id": self._entity(
                    f"{action.id}-variable-{_quoted(name)}",
                    "PropertyValue",
                    name=name,
                    value=value,
                )
            }
            for name, value in sorted(action.record.command.environment.items())
        ]
        return self._entity(
            action.id,
            "CreateAction",
            name=action.name,
            description=action.description,
            agent=self._agents(action.signers),
            instrument={"@id": self._instrument(action)},
            object=read,
            result=made,
            environment=set_for_it,
            startTime=action.started,
            endTime=action.ended,
            actionStatus={"@id": action.status},
            exitStatus=action.record.outcome.exit_status,
            error=action.error,
        )

    def _agents(self, signers: Sequence[str]) -> object:
        people = [
            {
                "@id": self._entity(
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
        people = people or [{"@id": _NOBODY}]
        return people if len(people) > 1 else people[0]

    def _all_signers(self) -> list[str]:
        names = (one.signer for one in self._what.report.signatures)
        return sorted({name for name in names if name})

    def _instrument(self, action: Action) -> str:
        """Add what was executed, in the environment it was executed in."""
        record = action.record
        sources = [f"project/{name}" for name in programs(record)]
        return self._entity(
            f"{action.id}-program",
            "SoftwareApplication",
            name=" ".join(record.command.argv[:4]) or "no command",
            description=f"the command of claim {record.claim}",
            softwareVersion=_fact(action, "git.commit") or self._what.bundle.id,
            hasPart=[
                {"@id": self._crate.get(_quoted(name)).id}
                for name in sources
                if name in self._files
            ],
            softwareRequirements=[
                {
                    "@id": self._entity(
                        f"#{name}-{version}",
                        "SoftwareApplication",
                        name=name,
                        softwareVersion=version,
                    )
                }
                for name in ("python", "torch", "numpy")
                if (version := _fact(action, f"{name}.version"))
            ],
        )

    def _verification(self) -> str:
        report, at = self._what.report, rfc3339(self._what.at)
        error = verification_error(self._what)
        tool = self._entity(
            f"#reprobundle-{__version__}",
            "SoftwareApplication",
            name="reprobundle",
            softwareVersion=__version__,
        )
        verdict = self._entity(
            "#verdict",
            "PropertyValue",
            name="verdict",
            propertyID="reprobundle verdict (spec.md, section 8.2)",
            value=report.verdict,
            description="; ".join(report.reasons) or "no reason against it",
        )
        subject = BUNDLE_NAME if BUNDLE_NAME in self._files else "manifest.json"
        return self._entity(
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
            endTime=at,
            actionStatus={"@id": FAILED if error else COMPLETED},
            exitStatus=report.exit_status,
            error=error,
        )

    # --- the whole

    def _root(self, actions: Sequence[str]) -> None:
        what, root = self._what, self._crate.root_dataset
        citation, intent = what.citation, what.sealed.policy.intent
        profile = self._entity(
            PROFILE, "CreativeWork", name="Process Run Crate", version="0.6"
        )
        identity = self._entity(
            "#bundle-id",
            "PropertyValue",
            name="bundle id",
            propertyID="BLAKE3 digest of manifest.json",
            value=what.bundle.id,
        )
        properties: Properties = {
            "conformsTo": {"@id": profile},
            "name": citation.title or what.report.file.removesuffix(".rpb.zip"),
            "description": f"{intent.purpose or 'The author stated no purpose.'} "
            f"Verified on {rfc3339(what.at)[:10]}: {what.report.verdict}.",
            "datePublished": citation.released or rfc3339(what.at)[:10],
            "license": self._license(),
            "identifier": [
                {"@id": identity},
                *([citation.doi_url] if citation.doi else []),
            ],
            "mentions": [{"@id": one} for one in actions],
            "author": self._authors(),
            "version": citation.version,
            "url": citation.url or citation.repository,
        }
        if citation.doi:
            properties["cite-as"] = citation.doi_url
        for key, value in properties.items():
            if value not in ("", []):
                root[key] = value

    def _license(self) -> object:
        licenses = [
            {
                "@id": self._entity(
                    f"https://spdx.org/licenses/{name}", "CreativeWork", name=name
                )
            }
            for name in self._what.citation.licenses
        ]
        if not licenses:
            return "No licence is stated; ask the authors."
        return licenses if len(licenses) > 1 else licenses[0]

    def _authors(self) -> list[Properties]:
        return [
            {
                "@id": self._entity(
                    author.orcid or f"#author-{number}", "Person", name=author.name
                )
            }
            for number, author in enumerate(self._what.citation.authors, start=1)
        ]


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name)


def _fact(action: Action, name: str) -> str:
    fact = action.record.environment.get(name)
    return "" if fact is None or fact.value is None else str(fact.value)


def _original_name(item: Item) -> str:
    """Return the name by which the run knows a file, where the crate has another."""
    top, _, rest = item.name.partition("/")
    if top in ("project", "inputs", "stand-ins"):
        return rest
    parts = item.name.split("/", 3)
    is_output = item.role in ("output", "replay") and len(parts) == 4
    return parts[3] if is_output and parts[2] == "outputs" else ""
