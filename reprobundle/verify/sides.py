"""Both sides of one output, where they lie, and what the policy says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from reprobundle.format.policy import OutputRule, Policy, Tolerance
from reprobundle.format.record import Output
from reprobundle.verify.content import Content
from reprobundle.verify.rules import DevicePair, ignores, rule_for, tolerance_for


class Sides(NamedTuple):
    """One output of both runs, of equal kind and format.

    Attributes:
        reference: The output of the run that counts as right.
        replay: The output of the same name of the other run.
        reference_content: Where the reference's content lies.
        replay_content: Where the other run's content lies.
        policy: The frozen policy.
        devices: Whether both ran on the same kind of device.
        others: All outputs of the reference by name, which a rule may point at.
    """

    reference: Output
    replay: Output
    reference_content: Content
    replay_content: Content
    policy: Policy
    devices: DevicePair
    others: Mapping[str, Output] = MappingProxyType({})

    @property
    def rule(self) -> OutputRule | None:
        """The author's rule for this output, if there is one."""
        return rule_for(self.policy, self.reference.name)

    @property
    def is_checkpoint(self) -> bool:
        """Whether the content is read from the tensors that were exported of it."""
        return self.reference.format == "checkpoint"

    def ignored(self) -> Callable[[Sequence[str]], bool]:
        """Return a test whether one of some keys is left out by rule."""
        return ignores(self.policy, self.reference.name)

    def tolerance(self, dtype: str) -> Tolerance | None:
        """Return the tolerance of a dtype here; None is exact."""
        return tolerance_for(self.policy, self.reference.name, dtype, self.devices)

    def scales(self) -> Mapping[str, float]:
        """Return the scale of each array as the reference's record states it."""
        from reprobundle.verify.sampled_moments import root_mean_square

        return {one.name: root_mean_square(one) for one in self.reference.arrays}

    def streams(
        self, stack: ExitStack, *, tensors: bool = False
    ) -> tuple[BinaryIO, BinaryIO]:
        """Open the content of both, or the tensors that were exported of it."""
        if tensors:
            first = self.reference_content.open_member(self.reference.arrays_member)
            second = self.replay_content.open_member(self.replay.arrays_member)
        else:
            first = self.reference_content.open(self.reference)
            second = self.replay_content.open(self.replay)
        return stack.enter_context(first), stack.enter_context(second)
