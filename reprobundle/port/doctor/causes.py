"""The six causes for which MPS is missing, told apart, and the versions they need.

Which macOS each torch needs, and which cause comes first, the recorder knows
(``recorder/hardware/mps_obstacle.py``): one table, asked in the interpreter that is
judged. Further sources: ``torch.backends.mps``; sysctl(3) of macOS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reprobundle.format.doctor_report import CauseAnswer, Mps, MpsCause
from reprobundle.port.doctor.asked import Facts

RULE_DATE = "read from the wheels in December 2026"
# The words of the recorder's own search for the first cause (hardware/mps_obstacle.py,
# docs/mac.md) → the cause here. Replay, records and this say the same.
_KEYS = {
    "build-without-mps": "build",
    "macos-too-old": "macos",
    "intel-mac": "device",
    "unfit-gpu": "device",
    "rosetta": "rosetta",
    "virtual-machine": "virtual",
    "sandbox": "sandbox",
}


def numbers(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version; missing ones are 0."""
    found = [int(part) for part in re.findall(r"\d+", text)[:2]]
    return (*found, 0, 0)[0], (*found, 0, 0)[1]


def oldest_macos(facts: Facts) -> tuple[int, int] | None:
    """Return the oldest macOS for the torch that was asked, or for the newest torch."""
    value = facts.value("mps.oldest_macos")
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return int(value[0]), int(value[1])
    return None


def mps_answer(facts: Facts) -> tuple[Mps, str]:
    """Return whether MPS can be used, and the same in one sentence."""
    system = facts.text("os.system")
    if facts.value("torch.version") is None:
        return "unknown", f"torch could not be asked: {facts.why('torch.version')}"
    if facts.value("mps.trial") == "ok":
        return "usable", "MPS is usable: a tensor was computed there"
    if system != "Darwin":
        words = f"this is {system or 'no Mac'}; MPS cannot be tested here"
        return "not-testable", words
    if facts.value("mps.available"):
        said = facts.text("mps.trial") or facts.why("mps.trial")
        return (
            "not-usable",
            f"torch says that MPS is available, and a trial says: {said}",
        )
    cause = facts.text("mps.cause") or "torch gives no reason"
    return "not-usable", f"MPS is not usable: {cause}"


def causes(facts: Facts, variables: Mapping[str, str]) -> Iterator[MpsCause]:
    """Yield the six causes, each with its answer.

    Args:
        facts: What the interpreter said.
        variables: Environment of the process.
    """
    is_mac = facts.text("os.system") == "Darwin"
    missing = is_mac and facts.value("mps.trial") != "ok"
    answers = (
        ("build", "a build of torch without MPS", *_build(facts)),
        ("macos", "macOS too old for this torch", *_macos(facts)),
        ("device", "a device that MPS does not support", *_device(facts)),
        ("rosetta", "an Intel Python, translated by Rosetta", *_rosetta(facts)),
        ("virtual", "a virtual machine without Metal", *_virtual(facts)),
    )
    known = [answer for _, _, answer, _ in answers]
    sandbox = _sandbox(variables, missing=missing, others=known)
    first = _KEYS.get(facts.text("mps.key"), "") if missing else ""
    for name, title, answer, because in (
        *answers,
        ("sandbox", "Metal blocked by a sandbox", *sandbox),
    ):
        if not is_mac:
            answer, because = "not-applicable", "this is no Mac"
        elif name == first:
            answer, because = "yes", facts.text("mps.cause")
        remedy = facts.text("mps.remedy") if name == first else _REMEDIES[name]
        yield MpsCause(
            name=name, title=title, answer=answer, because=because, remedy=remedy
        )


_REMEDIES = {
    "build": "install torch from PyPI in a Python for arm64",
    "macos": "update macOS, or take an older torch",
    "device": "use a Mac with Apple Silicon",
    "rosetta": "install a Python for Apple Silicon, and torch for it",
    "virtual": "use a bare machine, or a virtual one that passes Metal on",
    "sandbox": "start the same command in Terminal or over SSH",
}


def _build(facts: Facts) -> tuple[CauseAnswer, str]:
    built = facts.value("mps.built")
    if built is None:
        return "unknown", facts.why("mps.built")
    return ("no" if built else "yes"), f"is_built() is {built}"


def _macos(facts: Facts) -> tuple[CauseAnswer, str]:
    here, torch = facts.text("os.version"), facts.text("torch.version")
    if not here or not torch:
        return "unknown", facts.why("os.version") or facts.why("torch.version")
    wanted = oldest_macos(facts)
    if wanted is None:
        return "unknown", facts.why("mps.oldest_macos")
    words = f"macOS {here}; torch {torch} wants {wanted[0]}.{wanted[1]}"
    return ("yes" if numbers(here) < wanted else "no"), words


def _device(facts: Facts) -> tuple[CauseAnswer, str]:
    if facts.value("gpu.metal"):
        return "no", f"Metal is there: {facts.text('gpu.metal')}"
    architecture = facts.text("machine.architecture")
    if architecture == "x86_64" and facts.value("machine.rosetta") is False:
        return "yes", "an Intel Mac; torch has had no build for it since 2.3"
    return "unknown", facts.why("gpu.metal") or "no Metal device is listed"


def _rosetta(facts: Facts) -> tuple[CauseAnswer, str]:
    translated = facts.value("machine.rosetta")
    if translated is None:
        return "unknown", facts.why("machine.rosetta")
    return ("yes" if translated else "no"), f"translated is {translated}"


def _virtual(facts: Facts) -> tuple[CauseAnswer, str]:
    virtual = facts.value("machine.virtual")
    if virtual is None:
        return "unknown", facts.why("machine.virtual")
    usable = facts.value("mps.trial") == "ok"
    words = f"kern.hv_vmm_present is {int(bool(virtual))}"
    return ("yes" if virtual and not usable else "no"), words


def _sandbox(
    variables: Mapping[str, str], *, missing: bool, others: list[CauseAnswer]
) -> tuple[CauseAnswer, str]:
    if not missing:
        return "no", "a tensor was computed on MPS"
    names = sorted(name for name in variables if "SANDBOX" in name.upper())
    if names:
        return "yes", f"the process has the variables {', '.join(names)}"
    if "yes" in others:
        return "unknown", "another cause is found; this one was not told apart"
    return "unknown", "no other cause is found; a sandboxed parent would look like this"
