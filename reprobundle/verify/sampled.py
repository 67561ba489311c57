"""The samples of one output, wherever they come from, and how to speak of them."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.findings import ArrayComparison
from reprobundle.format.record import Output
from reprobundle.outputs.arrays import read_arrays
from reprobundle.outputs.sample import read_sample, take_samples
from reprobundle.verify.compare_samples import Sampled
from reprobundle.verify.content import Content


def read_side(output: Output, content: Content, key: str) -> tuple[Sampled, ...]:
    """Return the samples of an output that was kept as a sample, or kept whole.

    Args:
        output: The output of one side.
        content: Where that side's content lies.
        key: Digest of the policy that decided the places of the other side's sample.

    Raises:
        UnreadableOutputError: There is no sample, it was taken at other places, or
            the content is damaged.
    """
    if output.stored == "sample":
        if output.sample_key != key:
            raise UnreadableOutputError("the samples were taken at different places")
        with content.open_member(output.member) as stream:
            samples = read_sample(stream, output.arrays, key=key, output=output.name)
        return tuple(map(Sampled, output.arrays, samples))
    if output.stored in ("none", "withheld"):
        raise UnreadableOutputError("one side kept neither content nor sample")
    return _from_whole(output, content, key)


def _from_whole(output: Output, content: Content, key: str) -> tuple[Sampled, ...]:
    is_checkpoint = output.format == "checkpoint"
    if is_checkpoint and not output.arrays_member:
        raise UnreadableOutputError("the tensors of one side were not exported")
    opened = (
        content.open_member(output.arrays_member)
        if is_checkpoint
        else content.open(output)
    )
    with opened as stream:
        arrays = read_arrays(stream, "safetensors" if is_checkpoint else output.format)
        if len(arrays) != len(output.arrays):
            message = "one side holds other arrays than its record says"
            raise UnreadableOutputError(message)
        samples = take_samples(arrays, key=key, output=output.name)
        return tuple(map(Sampled, output.arrays, samples))


def told(parts: Sequence[ArrayComparison]) -> str:
    """Return how much was compared, in words; empty if it was everything."""
    sampled = [part for part in parts if part.sampled_from]
    if not sampled:
        return ""
    seen = sum(part.elements for part in sampled)
    whole = sum(part.sampled_from for part in sampled)
    equal = sum(1 for part in parts if part.equal)
    also = f"; {equal:,} more arrays are bit-identical by digest" if equal else ""
    return (
        f"compared at {seen:,} of {whole:,} places; counts and moments of the whole "
        f"arrays agree{also}"
    )
