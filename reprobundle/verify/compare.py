"""How the outputs of a replay stand to those of the reference, matched by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from reprobundle.format.findings import OutputComparison
from reprobundle.format.policy import Policy
from reprobundle.format.record import Record
from reprobundle.verify.compare_output import compare_output
from reprobundle.verify.content import Content, on_disk
from reprobundle.verify.devices import device_pair
from reprobundle.verify.rules import matches_any
from reprobundle.verify.summing_up import excluded, uncompared


def compare_records(
    reference: Record,
    replay: Record,
    *,
    reference_content: Mapping[str, Path],
    replay_content: Mapping[str, Path],
    policy: Policy,
) -> tuple[OutputComparison, ...]:
    """Return how the outputs of two runs that still lie on disk stand to each other.

    Args:
        reference: Record of the run that counts as right.
        replay: Record of the other run.
        reference_content: Its members, by their names relative to the record.
        replay_content: The same for the other run.
        policy: The policy to compare under.
    """
    return compare_outputs(
        reference,
        replay,
        on_disk(reference, reference_content),
        on_disk(replay, replay_content),
        policy=policy,
    )


def compare_outputs(
    reference: Record,
    replay: Record,
    reference_content: Content,
    replay_content: Content,
    *,
    policy: Policy,
) -> tuple[OutputComparison, ...]:
    """Return one comparison for every output of either run, in the reference's order.

    Args:
        reference: Record of the run that counts as right.
        replay: Record of the other run.
        reference_content: Where its content lies.
        replay_content: Where the other run's content lies.
        policy: The frozen policy.
    """
    belongs = _claimed(policy, reference.claim)
    pair = device_pair(reference, replay)
    replayed = {output.name: output for output in replay.outputs}
    known = {output.name: output for output in reference.outputs}
    results = []
    for output in reference.outputs:
        other = replayed.pop(output.name, None)
        if not belongs(output.name):
            results.append(excluded(output, "it belongs to another claim"))
        elif other is None:
            results.append(
                uncompared(output, "missing", "the replay did not produce it")
            )
        else:
            results.append(
                compare_output(
                    output,
                    other,
                    reference_content,
                    replay_content,
                    policy,
                    pair,
                    known,
                )
            )
    results.extend(
        uncompared(output, "unexpected", "the reference has no such output")
        for output in replayed.values()
        if belongs(output.name)
    )
    return tuple(results)


def _claimed(policy: Policy, claim: str) -> Callable[[str], bool]:
    patterns = next((c.outputs for c in policy.claims if c.name == claim), ())
    return lambda name: matches_any(name, patterns)
