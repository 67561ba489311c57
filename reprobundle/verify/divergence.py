"""Where two traced runs part first (docs/draws.md, "First divergence").

Entries are laid side by side by module path, step and call, never by their position:
another device runs other operators. Modules, inputs, gradients and parameters tell the
place; operators of one name and number inside it tell more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import BinaryIO, Final, NamedTuple

import msgspec

from reprobundle.errors import BundleError
from reprobundle.format.findings import CheckOutcome, Finding
from reprobundle.format.policy import Policy, Tolerance
from reprobundle.format.record import Number, as_float
from reprobundle.verify.checks import finding
from reprobundle.verify.rules import DevicePair, tolerance_for

MEMBER: Final = "fingerprints.jsonl"
FORMAT: Final = "reprobundle/fingerprints/1"
_MOST_BYTES = 64 << 20
_LONGEST_LINE = 1 << 16
_ORDER = {"input": 0, "module": 0, "returned": 1, "gradient": 2, "parameter": 3}
# What a place was made from: one of these kinds, if any was seen in its step.
_SOURCES = {
    "returned": ("module",),
    "gradient": ("returned", "module"),
    "parameter": ("gradient",),
}
_NAMES = {"returned": "gradient coming back to", "gradient": "gradient of"}
_EXACT = Tolerance(rtol=0.0, atol=0.0)

Key = tuple[int, str, str, int, str, int]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: the form of the file, and whether it holds every entry."""

    format: str
    complete: bool


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One place and the numbers of its tensor, as the recorder writes them."""

    kind: str
    step: int
    path: str
    call: int
    operator: str
    place: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    norm: Number
    sum: Number

    @property
    def key(self) -> Key:
        """What names the same place in another run."""
        return (
            self.step,
            self.kind,
            self.path,
            self.call,
            self.operator,
            self.place,
        )


class Divergence(NamedTuple):
    """The first place where two runs differ by more than the tolerance.

    Attributes:
        reference, replay: Both entries; None where the replay lacks the place.
        relative: Relative error of the norm or of the sum, whichever is larger.
        inputs_agreed: Whether what it was made from was seen, and agreed.
        places: Places that were compared in all.
        last: Path of the module to which a gradient came back just before, which
            agreed; empty for a place of another kind, or if it is the first.
    """

    reference: Entry
    replay: Entry | None
    relative: float
    inputs_agreed: bool
    places: int
    last: str


def read_fingerprints(stream: BinaryIO) -> list[Entry]:
    """Return the entries of a member, in the order of the run.

    Raises:
        BundleError: It is too large or not of this form.
    """
    data = stream.read(_MOST_BYTES + 1)
    lines = data.splitlines()
    try:
        header = msgspec.json.decode(lines[0] if lines else b"", type=Header)
        if len(data) > _MOST_BYTES or header.format != FORMAT:
            raise BundleError("not of a known form or size", rule="R-7.1", where=MEMBER)
        decoder = msgspec.json.Decoder(Entry)
        return [decoder.decode(line) for line in lines[1:]]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BundleError(str(error), rule="R-7.1", where=MEMBER) from error


def first_divergence(
    reference: Iterable[Entry],
    replay: Iterable[Entry],
    *,
    policy: Policy,
    devices: DevicePair,
) -> tuple[Divergence | None, int]:
    """Return the first place where two runs part, and how many were compared.

    Args:
        reference: Entries of one run, in its order.
        replay: Entries of the other.
        policy: Holds the tolerance of each dtype.
        devices: Whether both ran on the same kind of device.
    """
    here = list(reference)
    there = {entry.key: entry for entry in replay}
    # Operators differ between devices; one that only one side has says nothing.
    places = [entry for entry in here if entry.kind != "operator"]
    places.sort(key=lambda entry: (entry.step, _ORDER.get(entry.kind, 4)))
    for number, entry in enumerate(places):
        other = there.get(entry.key)
        relative = _outside(entry, other, policy, devices)
        if relative is None:
            continue
        inner = _inside(entry, here, there, policy=policy, devices=devices)
        left, right, error = inner or (entry, other, relative)
        before = any(_feeds(one, entry) for one in places[:number])
        found = Divergence(
            left,
            right,
            error,
            before,
            len(places),
            _last_agreed(places[:number], entry),
        )
        return found, len(places)
    return None, len(places)


def _last_agreed(before: list[Entry], entry: Entry) -> str:
    """Return where the gradient came back just before, if both are of one backward."""
    last = before[-1] if before else entry
    same = last is not entry and last.step == entry.step
    return last.path if same and last.kind == entry.kind == "returned" else ""


def _feeds(before: Entry, entry: Entry) -> bool:
    """Tell whether a place that agreed is what a later one was made from."""
    if before.step != entry.step:
        return False
    if entry.kind == "module":
        same = (before.path, before.call) == (entry.path, entry.call)
        return same and before.kind == "input"
    return before.kind in _SOURCES.get(entry.kind, ())


def check_divergence(
    reference: BinaryIO | None,
    replay: BinaryIO | None,
    *,
    policy: Policy,
    devices: DevicePair,
    differs: bool,
) -> Finding:
    """Return what two traced runs say about where they part.

    Args:
        reference: The member with its fingerprints; None if there is none.
        replay: The same of the other run.
        policy: Holds the tolerance of each dtype.
        devices: Whether both ran on the same kind of device.
        differs: Whether an output of the replay differs.
    """
    if reference is None or replay is None:
        side = "reference" if reference is None else "replay"
        return finding(
            "first-divergence",
            "not-checked",
            f"the {side} has no fingerprints: it was not traced, or called no module",
            advice="make an evidence pass of both",
        )
    try:
        left, right = read_fingerprints(reference), read_fingerprints(replay)
    except BundleError as error:
        return finding("first-divergence", "not-checked", str(error))
    found, places = first_divergence(left, right, policy=policy, devices=devices)
    if found is None:
        if not places:
            reason = "no place was fingerprinted"
            return finding("first-divergence", "not-checked", reason)
        reason = f"no divergence seen at {places:,} places"
        # Outputs that differ did part somewhere: not here.
        outcome: CheckOutcome = "not-applicable" if differs else "pass"
        return finding("first-divergence", outcome, reason)
    return finding(
        "first-divergence",
        "fail" if differs else "not-applicable",
        _sentence(found, differs=differs),
        where=_place(found.reference),
        expected=_numbers(found.reference, found.replay),
        got=_numbers(found.replay, found.reference),
    )


def _sentence(found: Divergence, *, differs: bool) -> str:
    agreed = "its inputs agreed" if found.inputs_agreed else "its inputs were not seen"
    if found.reference.kind == "input":
        agreed = "what was before it agreed"
    size = f"relative error {found.relative:.2g}, {agreed}{_step_of(found)}"
    rest = "" if differs else "; the outputs agree all the same"
    return f"the runs part here first: {size}{rest}"


def _step_of(found: Divergence) -> str:
    """Say which part of a training step made a difference, where its sources agreed."""
    if not found.inputs_agreed:
        return ""
    told = {
        "returned": f"; the backward pass before this place made it{_since(found)}",
        "gradient": "; the backward pass of this module made it",
        "parameter": "; the optimizer's step made it",
    }
    return told.get(found.reference.kind, "")


def _since(found: Divergence) -> str:
    if not found.last:
        return ""
    return f", after the gradient that came back to {found.last} agreed"


def _place(entry: Entry) -> str:
    inside = f", {entry.operator}" if entry.operator else ""
    kind = _NAMES.get(entry.kind, entry.kind)
    return f"step {entry.step}, {kind} {entry.path}{inside}, {entry.dtype}"


def _numbers(entry: Entry | None, other: Entry | None) -> str:
    if entry is None:
        return "nothing of this place"
    is_same_kind = other is None or entry.dtype == other.dtype
    kind = "" if is_same_kind else f"{entry.dtype}, "
    return f"{kind}norm {entry.norm}, sum {entry.sum}, shape {list(entry.shape)}"


def _inside(
    module: Entry,
    here: list[Entry],
    there: Mapping[Key, Entry],
    *,
    policy: Policy,
    devices: DevicePair,
) -> tuple[Entry, Entry, float] | None:
    """Return the first operator of a module call that both ran and that differs."""
    call = (module.step, module.path, module.call)
    for entry in here:
        if entry.kind != "operator" or (entry.step, entry.path, entry.call) != call:
            continue
        other = there.get(entry.key)
        if other is None or module.kind != "module":
            continue
        relative = _outside(entry, other, policy, devices)
        if relative is not None:
            return entry, other, relative
    return None


def _outside(
    entry: Entry, other: Entry | None, policy: Policy, devices: DevicePair
) -> float | None:
    """Return the relative error of two entries, or None if they agree.

    A sum of n elements that are each off by `rtol` is off by at most ``rtol`` times
    the sum of magnitudes, which is at most the norm times the root of n.
    """
    if other is None or entry.shape != other.shape or entry.dtype != other.dtype:
        return float("inf")
    rule = tolerance_for(policy, "", entry.dtype, devices) or _EXACT
    elements = 1
    for extent in entry.shape:
        elements *= extent
    root = elements**0.5
    scale = max(as_float(entry.norm), as_float(other.norm))
    slack = rule.atol * root
    errors = (
        (_error(entry.norm, other.norm), scale),
        (_error(entry.sum, other.sum), scale * root),
    )
    outside = [
        error / whole if whole else float("inf")
        for error, whole in errors
        if error > rule.rtol * whole + slack * (root if whole > scale else 1.0)
    ]
    return max(outside) if outside else None


def _error(reference: Number, replay: Number) -> float:
    """Return the absolute error; two NaN, and the same infinity, agree."""
    if reference == replay:
        return 0.0
    error = abs(as_float(reference) - as_float(replay))
    return error if error == error else float("inf")
