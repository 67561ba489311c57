"""How one output of a replay stands to its reference.

The order is that of spec.md, "Comparison": rule, format, equal digests (nothing more
to compute), then the content. Content that cannot be read as what it is called is
compared byte for byte, and content that was not kept is not compared, which is never
a success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import BinaryIO

import msgspec

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.findings import (
    ArrayComparison,
    OutputComparison,
    OutputResult,
)
from reprobundle.format.policy import Policy, Tolerance
from reprobundle.format.record import Output
from reprobundle.outputs.text import printable
from reprobundle.verify.content import Content
from reprobundle.verify.rules import DevicePair, ignores, rule_for, tolerance_for
from reprobundle.verify.summaries import compare_summaries

MOST_PARTS = 100
EXACT = Tolerance(rtol=0.0, atol=0.0)


def uncompared(output: Output, result: OutputResult, reason: str) -> OutputComparison:
    """Return the result for an output whose content need not be looked at."""
    return OutputComparison(
        name=output.name,
        kind=output.kind,
        format=output.format,
        result=result,
        reason=reason,
    )


def excluded(output: Output, reason: str) -> OutputComparison:
    """Return the result for an output that is left out on purpose."""
    return OutputComparison(
        name=output.name,
        kind=output.kind,
        format=output.format,
        result="not-compared",
        reason=reason,
        excluded=True,
    )


def compare_output(
    reference: Output,
    replay: Output,
    reference_content: Content,
    replay_content: Content,
    policy: Policy,
    devices: DevicePair,
) -> OutputComparison:
    """Return how one output stands to its reference.

    Args:
        reference: The output of the run that counts as right.
        replay: The output of the same name of the other run.
        reference_content: Where the reference's content lies.
        replay_content: Where the other run's content lies.
        policy: The frozen policy.
        devices: Whether both ran on the same kind of device.
    """
    rule = rule_for(policy, reference.name)
    if rule is not None and not rule.compare:
        return excluded(reference, f"left out by rule: {rule.reason}")
    if (reference.kind, reference.format) != (replay.kind, replay.format):
        reason = f"format {replay.format}, expected {reference.format}"
        return uncompared(reference, "outside-tolerance", reason)
    one = _Comparison(
        reference, replay, reference_content, replay_content, policy, devices
    )
    if policy.profile == "compat":
        return one.by_structure()
    if (reference.size_bytes, reference.blake3) == (replay.size_bytes, replay.blake3):
        return one.by_digest()
    return one.by_content()


class _Comparison:
    """One output of both runs, of equal kind and format."""

    def __init__(
        self,
        reference: Output,
        replay: Output,
        reference_content: Content,
        replay_content: Content,
        policy: Policy,
        devices: DevicePair,
    ) -> None:
        self.reference = reference
        self.replay = replay
        self.reference_content = reference_content
        self.replay_content = replay_content
        self.policy = policy
        self.devices = devices
        self.rule = rule_for(policy, reference.name)

    def by_structure(self) -> OutputComparison:
        """Compare names, dtypes and shapes only, as the profile ``compat`` asks."""
        parts = compare_summaries(self.reference, self.replay)
        if any(part.problem for part in parts):
            return self._result("outside-tolerance", _first_problem(parts), parts)
        reason = "the profile compat compares structure, not values"
        return self._result("not-compared", reason, parts)

    def by_digest(self) -> OutputComparison:
        """Both have the same bytes; what is in them is told by their summaries."""
        parts = compare_summaries(self.reference, self.replay)
        return self._result("bit-identical", "", parts)

    def by_content(self) -> OutputComparison:
        """Read both sides and compare what is in them."""
        if "sample" in (self.reference.stored, self.replay.stored):
            return self._by_samples()
        unread = self._unread()
        if unread:
            return self._without_content(unread)
        try:
            return self._typed()
        except UnreadableOutputError as error:
            with ExitStack() as stack:
                from reprobundle.verify.compare_text import compare_bytes

                part = compare_bytes(*self._streams(stack))
            return self._outside_or_equal(
                f"compared byte for byte: {error.message}", (part,)
            )

    def _by_samples(self) -> OutputComparison:
        """Compare what samples hold; the side that kept all is sampled now."""
        from reprobundle.verify import compare_samples, sampled

        leave_out = ignores(self.policy, self.reference.name)
        key = self.reference.sample_key or self.replay.sample_key
        sides = (
            (self.reference, self.reference_content),
            (self.replay, self.replay_content),
        )
        try:
            held = [sampled.read_side(one, content, key) for one, content in sides]
        except UnreadableOutputError as error:
            return self._without_content(f"the bytes differ, and {error.message}")
        names = {one.summary.name for side in held for one in side}
        ignored = {name for name in names if leave_out((name,))}
        parts = compare_samples.compare_samples(
            [one for one in held[0] if one.summary.name not in ignored],
            [one for one in held[1] if one.summary.name not in ignored],
            self._tolerance,
        )
        is_checkpoint = self.reference.format == "checkpoint"
        return self._from_parts(
            parts,
            tuple(sorted(ignored)),
            unseen=_REST_OF_CHECKPOINT if is_checkpoint else "",
            partly=sampled.told(parts),
        )

    def _unread(self) -> str:
        """Return why the content of one side cannot be read, or an empty string."""
        sides = (("reference", self.reference), ("replay", self.replay))
        for side, output in sides:
            if output.format == "checkpoint":
                if not output.arrays_member:
                    return (
                        f"the bytes differ, and the {side}'s tensors were not exported"
                        " (a checkpoint is never unpickled)"
                    )
            elif output.stored == "none":
                return f"the bytes differ, and the {side}'s content was not kept"
        return ""

    def _without_content(self, reason: str) -> OutputComparison:
        parts = compare_summaries(self.reference, self.replay)
        if self.reference.kind == "bytes":
            # Plain bytes are compared exactly, and that they differ is known.
            return self._result("outside-tolerance", reason, parts)
        if any(part.problem for part in parts):
            return self._result("outside-tolerance", _first_problem(parts), parts)
        return self._result("not-compared", reason)

    def _typed(self) -> OutputComparison:
        comparers: Mapping[str, Callable[[], OutputComparison]] = {
            "arrays": self._arrays,
            "table": self._cells,
            "document": self._cells,
            "text": self._text,
            "log": self._text,
            "bytes": self._bytes,
        }
        return comparers[self.reference.kind]()

    # --- kinds

    def _arrays(self) -> OutputComparison:
        from reprobundle.outputs.arrays import read_arrays
        from reprobundle.verify.compare_arrays import compare_arrays
        from reprobundle.verify.equivalent import equivalent

        leave_out = ignores(self.policy, self.reference.name)
        is_checkpoint = self.reference.format == "checkpoint"
        file_format = "safetensors" if is_checkpoint else self.reference.format
        with ExitStack() as stack:
            sides = [
                read_arrays(stream, file_format)
                for stream in self._streams(stack, tensors=is_checkpoint)
            ]
            names = {array.name for side in sides for array in side}
            ignored = {name for name in names if leave_out((name,))}
            left, right = (
                [array for array in side if array.name not in ignored] for side in sides
            )
            notes: Mapping[str, str] = {}
            if self.rule is not None:
                left, right, notes = equivalent(self.rule, left, right, self._tolerance)
            parts = compare_arrays(left, right, self._tolerance, self._scales())
        parts = tuple(_noted(part, notes.get(part.name, "")) for part in parts)
        whole = "" if not is_checkpoint else _REST_OF_CHECKPOINT
        return self._from_parts(parts, tuple(sorted(ignored)), unseen=whole)

    def _cells(self) -> OutputComparison:
        from reprobundle.verify import compare_cells

        formats = (self.reference.format, self.replay.format)
        tolerance = self._tolerance("number") or EXACT
        leave_out = ignores(self.policy, self.reference.name)
        rows = self.rule.rows if self.rule is not None else None
        if self.reference.kind == "table":
            cells = compare_cells.compare_tables(
                lambda: self.reference_content.open(self.reference),
                lambda: self.replay_content.open(self.replay),
                formats,
                tolerance=tolerance,
                ignored=leave_out,
                rows=self.reference.rows or 0,
                first_rows=rows,
            )
        else:
            with ExitStack() as stack:
                cells = compare_cells.compare_documents(
                    *self._streams(stack),
                    formats,
                    tolerance=tolerance,
                    ignored=leave_out,
                    first_rows=rows,
                )
        if rows is None:
            return self._from_parts(cells.parts, cells.ignored)
        parts = tuple(
            _noted(part, f"only rows before {rows:,}") for part in cells.parts
        )
        return self._from_parts(parts, (*cells.ignored, f"rows {rows:,} and later"))

    def _text(self) -> OutputComparison:
        from reprobundle.verify.compare_text import compare_text

        tolerance = self.rule.tolerance if self.rule is not None else None
        with ExitStack() as stack:
            part = compare_text(*self._streams(stack), tolerance=tolerance)
        return self._from_parts((part,), ())

    def _bytes(self) -> OutputComparison:
        from reprobundle.verify.compare_text import compare_bytes

        with ExitStack() as stack:
            part = compare_bytes(*self._streams(stack))
        with ExitStack() as stack:
            from reprobundle.verify.compare_images import compare_images

            images = compare_images(*self._streams(stack))
        if images.equal and not part.equal:
            reason = "the bytes of the file differ, every pixel is identical"
            return self._result("bit-identical", reason)
        return self._outside_or_equal(images.reason, (part,))

    # --- results

    def _tolerance(self, dtype: str) -> Tolerance | None:
        return tolerance_for(self.policy, self.reference.name, dtype, self.devices)

    def _scales(self) -> Mapping[str, float]:
        """Return the scale of each array as the reference's record states it."""
        from reprobundle.verify.sampled_moments import root_mean_square

        return {one.name: root_mean_square(one) for one in self.reference.arrays}

    def _streams(
        self, stack: ExitStack, *, tensors: bool = False
    ) -> tuple[BinaryIO, BinaryIO]:
        if tensors:
            first = self.reference_content.open_member(self.reference.arrays_member)
            second = self.replay_content.open_member(self.replay.arrays_member)
        else:
            first = self.reference_content.open(self.reference)
            second = self.replay_content.open(self.replay)
        return stack.enter_context(first), stack.enter_context(second)

    def _from_parts(
        self,
        parts: tuple[ArrayComparison, ...],
        ignored: tuple[str, ...],
        *,
        unseen: str = "",
        partly: str = "",
    ) -> OutputComparison:
        """Sum up the parts of an output whose bytes are known to differ.

        Args:
            parts: Comparison of everything that was compared.
            ignored: What a rule left out.
            unseen: What of the file no part covers, in words.
            partly: How much of it was compared, in words, if it was not all.
        """
        if any(part.problem for part in parts):
            reason = _first_problem(parts)
            return self._result("outside-tolerance", reason, parts, ignored)
        if not any(part.elements for part in parts):
            reason = "nothing in it was compared: " + (
                "all of it is left out by rule" if ignored else "it holds no values"
            )
            return self._result("not-compared", reason, parts, ignored)
        if not all(part.equal for part in parts):
            return self._result("within-tolerance", partly, parts, ignored)
        if unseen:
            return self._result("within-tolerance", unseen, parts, ignored)
        reason = "the bytes of the file differ, every compared value is identical"
        return self._result("bit-identical", reason, parts, ignored)

    def _outside_or_equal(
        self, reason: str, parts: tuple[ArrayComparison, ...]
    ) -> OutputComparison:
        if all(part.equal for part in parts):
            # Two records state different digests for bytes that are the same.
            message = "the digests differ although the bytes are equal"
            return self._result("not-compared", message, parts)
        problem = _first_problem(parts)
        text = f"{problem}; {reason}" if reason else problem
        return self._result("outside-tolerance", text, parts)

    def _result(
        self,
        result: OutputResult,
        reason: str,
        parts: Sequence[ArrayComparison] = (),
        ignored: tuple[str, ...] = (),
    ) -> OutputComparison:
        if len(parts) > MOST_PARTS:
            parts = _most_telling(parts)
        parts = [_printable(part) for part in parts]
        return OutputComparison(
            name=self.reference.name,
            kind=self.reference.kind,
            format=self.reference.format,
            result=result,
            reason=printable(reason, longest=1000),
            ignored=tuple(printable(name) for name in ignored),
            parts=tuple(parts),
        )


_REST_OF_CHECKPOINT = (
    "the tensors are identical; what else the checkpoint holds was not compared"
)


def _noted(part: ArrayComparison, note: str) -> ArrayComparison:
    """Return a part with what a rule took as equal; it is then not bit-identical."""
    if not note:
        return part
    return msgspec.structs.replace(part, equal=False, note=note)


def _printable(part: ArrayComparison) -> ArrayComparison:
    texts = {
        name: printable(getattr(part, name))
        for name in ("name", "expected", "got", "note", "problem")
    }
    return msgspec.structs.replace(part, **texts)


def _most_telling(parts: Sequence[ArrayComparison]) -> Sequence[ArrayComparison]:
    """Return the parts worth keeping of very many: what differs or looks odd."""
    if all(part.zero for part in parts):
        return parts[:MOST_PARTS]
    telling = [part for part in parts if not part.equal or part.nan or part.infinite]
    telling.sort(key=lambda part: (not part.problem, not part.nan, part.equal))
    return telling[:MOST_PARTS]


def _first_problem(parts: Sequence[ArrayComparison]) -> str:
    """Return the most telling problem, and how many more there are."""
    bad = [part for part in parts if part.problem]
    first = bad[0]
    name = f"{first.name}: " if first.name else ""
    more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
    return f"{name}{first.problem}{more}"
