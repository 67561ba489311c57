"""Which device a run used, whether it was the one asked for, and CPU fallback."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.policy import Policy
from reprobundle.format.record import Fact, OperatorUse, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.crossings import check_crossings
from reprobundle.verify.fallback import check_fallback
from reprobundle.verify.kernel_findings import check_kernels
from reprobundle.verify.rules import DevicePair

_STANDIN = "-standin"
_NO_CHOICE = frozenset({"", "as-is", "auto"})


def device_of(record: Record) -> str:
    """Return the device type the run used.

    The accelerator if one was seen, else ``cpu``. A stand-in never counts as the
    device it stands for: it is ``mps-standin``.
    """
    seen = [name for name in record.devices.observed if name not in ("cpu", "meta")]
    if not seen:
        return "cpu"
    name = "+".join(sorted(seen))
    if name.endswith(_STANDIN):
        return name
    stands_in = record.devices.standin or contradiction(record)
    return f"{name}{_STANDIN}" if stands_in else name


def contradiction(record: Record) -> str:
    """Return why the device that was seen cannot have been there, or nothing."""
    seen, facts = record.devices.observed, record.environment
    if "mps" in seen and record.platform != "darwin":
        return f"MPS exists on macOS only, this run was made on {record.platform}"
    built = facts.get("torch.mps.built")
    if "mps" in seen and built is not None and built.value is False:
        return "this build of torch has no MPS"
    system = facts.get("os.name")
    if "mps" in seen and system is not None and _is_no_mac(system):
        return f"MPS exists on macOS only, this run was made on {system.value}"
    label = _label(facts.get("torch.version"))
    if {"cuda", "mps"} & {*seen} and label == "cpu":
        return "this build of torch is one for the CPU alone, by its version"
    kinds = [facts.get(f"torch.{kind}.built") for kind in ("cuda", "hip")]
    if "cuda" in seen and all(kind is not None and kind.unknown for kind in kinds):
        return "this build of torch has neither CUDA nor ROCm"
    return ""


def _label(version: Fact | None) -> str:
    """Return what a build is for, as its version says: ``cpu``, ``cu130``, nothing."""
    if version is None or version.unknown:
        return ""
    return str(version.value).partition("+")[2]


def _is_no_mac(system: Fact) -> bool:
    return not system.unknown and not str(system.value).startswith(("macOS", "Mac OS"))


def missing_mps(record: Record) -> tuple[str, str]:
    """Return why MPS was not there for a run and what helps; empty where not known."""
    names = ("torch.mps.missing_cause", "torch.mps.missing_remedy")
    known = [record.environment.get(name) for name in names]
    cause, remedy = (str(fact.value or "") if fact else "" for fact in known)
    return cause, remedy


def device_pair(reference: Record, replay: Record) -> DevicePair:
    """Return which column of the policy's tolerances applies to two runs."""
    return "same" if device_of(reference) == device_of(replay) else "different"


def platform_label(record: Record) -> str:
    """Return the platform as a policy names it, such as ``macos-mps``."""
    system = {"darwin": "macos", "win32": "windows"}.get(
        record.platform, record.platform
    )
    return f"{system}-{device_of(record)}"


def check_devices(
    record: Record, policy: Policy, traced: Record | None = None
) -> Iterator[Finding]:
    """Yield the findings of V15 about one replay.

    Args:
        record: The replay.
        policy: The frozen policy.
        traced: The evidence pass of the same occasion and claim, if one was made.
    """
    yield _asked(record, traced or record)
    yield _standin(record)
    yield from check_fallback(record, traced or record, policy, used=device_of(record))
    yield from check_kernels(record, traced or record, used=device_of(record))
    yield from check_crossings(traced or record, used=device_of(record))
    yield _accepting(record, policy)


def _asked(record: Record, traced: Record) -> Finding:
    asked, used = record.devices.requested, device_of(record)
    if used != "cpu" and (told := _model_on_cpu(traced)):
        return finding(
            "device-asked",
            "warn",
            f"{used} was used, and the CPU did work of the model: {told}",
            where=_first_on_cpu(traced),
            got=used,
            advice="move the model and its inputs to the device",
        )
    if asked in _NO_CHOICE:
        cause, _ = missing_mps(record)
        why = f"; {cause}" if cause and used == "cpu" else ""
        reason = f"it chose {used} by itself{why}"
        return finding("device-asked", "pass", reason, got=used)
    if asked == used:
        return finding("device-asked", "pass", got=used)
    if asked == used.removesuffix(_STANDIN):
        # That it is no such device is the next finding's business.
        return finding("device-asked", "pass", f"a stand-in for {asked}", got=used)
    return finding(
        "device-asked",
        "fail",
        f"{asked} was asked for, tensors were seen on {used} only",
        expected=asked,
        got=used,
        advice="have the command take its device from {device} or REPROBUNDLE_DEVICE",
    )


def _on_cpu(traced: Record) -> list[OperatorUse]:
    """Return the work of a model that a run with an accelerator left to the CPU.

    A loss that the script computes on the CPU is an explicit copy: its part of a
    backward pass counts only where the device had none.
    """
    uses = traced.devices.operators
    shared = any(one.device != "cpu" and one.phase == "backward" for one in uses)
    return [
        one
        for one in uses
        if one.device == "cpu" and not (shared and one.phase == "backward")
    ]


def _model_on_cpu(traced: Record) -> str:
    counts: dict[str, int] = {}
    for one in _on_cpu(traced):
        counts[one.phase] = counts.get(one.phase, 0) + one.count
    return ", ".join(
        f"{count:,} operators in {phase}" for phase, count in counts.items()
    )


def _first_on_cpu(traced: Record) -> str:
    return next((one.where for one in _on_cpu(traced) if one.where), "")


def _standin(record: Record) -> Finding:
    if not record.devices.standin and _STANDIN not in device_of(record):
        return finding("standin-device", "pass")
    reason = contradiction(record) or "a stand-in took the accelerator's place"
    return finding(
        "standin-device",
        "warn",
        f"{reason}: this is no result of that device",
        got=device_of(record),
        advice="replay on a machine that has the device",
    )


def _accepting(record: Record, policy: Policy) -> Finding:
    wanted, label = policy.intent.accepting_platforms, platform_label(record)
    if not wanted:
        return finding("accepting-platform", "pass", "any platform counts", got=label)
    if label in wanted:
        return finding("accepting-platform", "pass", got=label)
    listed = ", ".join(wanted)
    cause, remedy = missing_mps(record)
    for_mps = bool(cause) and any(name.endswith("-mps") for name in wanted)
    return finding(
        "accepting-platform",
        "not-checked",
        f"the result counts on {listed}, this replay ran on {label}"
        + (f": {cause}" if for_mps else ""),
        expected=listed,
        got=label,
        advice=remedy if for_mps else f"replay on {wanted[0]}",
    )
