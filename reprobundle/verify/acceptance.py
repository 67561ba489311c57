"""The points of the acceptance list, each ticked from evidence (V10).

The eleventh, the second person, follows from signatures (`verify.assurance`).

A point that cannot be ticked is ``not-checked`` or ``not-applicable`` with the reason;
none of them changes the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reprobundle.format.findings import Finding
from reprobundle.format.manifest import Member
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of
from reprobundle.verify.run_history import check_history
from reprobundle.verify.sealed import Sealed

_MAC_FACTS = (
    "python.version",
    "torch.version",
    "os.version",
    "os.build",
    "machine.model",
    "cpu.model",
)


def check_acceptance(
    members: Mapping[str, Member],
    sealed: Sealed,
    replays: Sequence[Record],
    completeness: Sequence[Finding],
    *,
    experiments: Sequence[Record] = (),
) -> Iterator[Finding]:
    """Yield the findings of V10 but for that about the second person.

    Args:
        members: The sealed members by path.
        sealed: The decoded documents.
        replays: Records of the attached replays whose integrity holds, without
            experiments.
        completeness: The findings of V9.
        experiments: Records of the attached experiments.
    """
    records = [*sealed.runs.values(), *replays]
    on_mac = [record for record in records if record.platform == "darwin"]
    on_mps = [record for record in records if device_of(record) == "mps"]
    yield _versions(on_mac)
    yield _start(sealed.reference, completeness)
    yield _error(members, sealed.reference)
    yield _memory(records)
    yield _pressure(on_mac)
    yield from check_history(sealed.reference, experiments)
    yield _same_script(records, on_mps)
    yield _fallback(on_mps)
    yield _together(completeness)


def _versions(on_mac: Sequence[Record]) -> Finding:
    if not on_mac:
        return finding(
            "lists-versions",
            "not-applicable",
            "no run of this bundle was made on a Mac",
        )
    for name in _MAC_FACTS:
        fact = on_mac[-1].environment.get(name)
        if fact is None or fact.unknown:
            reason = fact.unknown if fact else "the fact was not recorded"
            return finding("lists-versions", "not-checked", reason, where=name)
    return finding("lists-versions", "pass")


def _start(reference: Record, completeness: Sequence[Finding]) -> Finding:
    outcomes = {found.id: found for found in completeness}
    for name in ("has-input-sample", "has-seeds"):
        found = outcomes[name]
        if found.outcome not in ("pass", "not-applicable"):
            return finding("lists-start", "not-checked", found.reason, where=name)
    known = reference.randomness
    if not (known.initial or known.absent):
        return finding(
            "lists-start", "not-checked", "the generators' initial states are not known"
        )
    if "torch.version" not in reference.environment:
        note = "inputs by digest, generators by fingerprint"
        return finding("lists-start", "pass", note)
    kinds = {tensor.kind for tensor in known.start if tensor.fingerprint}
    if "weight" not in kinds or not kinds & {"input", "batch"}:
        reason = "no fingerprint of weights, or none of a first input or batch"
        return finding("lists-start", "not-checked", reason)
    note = "inputs by digest, generators, weights and first batch by fingerprint"
    return finding("lists-start", "pass", note)


def _error(members: Mapping[str, Member], reference: Record) -> Finding:
    if not reference.outcome.exit_status:
        return finding("lists-error", "not-applicable", "the reference did not fail")
    stderr = "runs/1/stderr.txt"
    if stderr in members and reference.outcome.error is not None:
        return finding("lists-error", "pass", where=stderr)
    return finding(
        "lists-error",
        "not-checked",
        "the failure left no Python error or no standard error output",
    )


def _memory(records: Sequence[Record]) -> Finding:
    accelerated = [
        record
        for record in records
        if device_of(record) != "cpu" and record.pass_name != "evidence"
    ]
    if not accelerated:
        return finding("lists-memory", "not-applicable", "every run used the CPU only")
    for record in accelerated:
        peak = record.memory.peak_device_bytes
        if peak.unknown or not record.memory.samples:
            reason = peak.unknown or "no sample was taken"
            return finding(
                "lists-memory", "not-checked", reason, where=device_of(record)
            )
    return finding("lists-memory", "pass")


def _pressure(on_mac: Sequence[Record]) -> Finding:
    if not on_mac:
        return finding(
            "lists-pressure",
            "not-applicable",
            "no run of this bundle was made on a Mac",
        )
    samples = sum(record.memory.with_pressure for record in on_mac)
    if samples > 1:
        note = f"{samples:,} samples of the memory series"
        return finding("lists-pressure", "pass", note)
    at_start = any(
        "pressure" in name and not fact.unknown
        for record in on_mac
        for name, fact in record.environment.items()
    )
    reason = "the system's memory pressure was not recorded"
    if samples or at_start:
        # Once is no course: what happened during the run is not known.
        reason = "the system's memory pressure was read once, not during the run"
    return finding("lists-pressure", "not-checked", reason)


def _same_script(records: Sequence[Record], on_mps: Sequence[Record]) -> Finding:
    on_cpu = {record.files_digest for record in records if device_of(record) == "cpu"}
    if not on_mps or not on_cpu:
        return finding(
            "lists-same-script",
            "not-applicable",
            "there is no run on MPS and on the CPU to compare",
        )
    if {record.files_digest for record in on_mps} <= on_cpu:
        return finding("lists-same-script", "pass", "equal digests of all files")
    return finding(
        "lists-same-script", "not-checked", "the runs started from different files"
    )


def _fallback(on_mps: Sequence[Record]) -> Finding:
    if not on_mps:
        return finding(
            "lists-fallback", "not-applicable", "no run of this bundle used MPS"
        )
    unknown = [r for r in on_mps if r.devices.fallback == "not-checked"]
    if unknown:
        reason = unknown[0].devices.reason or "the operators were not traced"
        return finding("lists-fallback", "not-checked", reason)
    return finding("lists-fallback", "pass", on_mps[-1].devices.reason)


def _together(completeness: Sequence[Finding]) -> Finding:
    lacking = [found for found in completeness if found.outcome == "fail"]
    if lacking:
        return finding(
            "lists-together", "not-checked", lacking[0].reason, where=lacking[0].id
        )
    return finding("lists-together", "pass")
