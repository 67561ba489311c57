"""Where operators ran, by which evidence, and what left the device."""

from typing import Literal

import msgspec

from reprobundle.format.record.values import Count


class Witness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way of seeing CPU fallback, and where it looked.

    Attributes:
        name: ``warnings`` (each warning of torch, of the whole run), ``profiler`` (an
            event ``aten::_to_cpu`` inside an operator), ``census`` (which operators
            the device was given; judged by the table of the torch version).
        looked: Whether it looked at all.
        steps: Ranges of optimizer steps it looked at, first and last, counted from 1;
            empty for the whole run. The part after the last step counts as one more;
            0 to 0 is the beginning of the first step and no more.
        total_steps: Steps of the run.
        reason: Why it did not look, or not everywhere.
    """

    name: Literal["warnings", "profiler", "census"]
    looked: bool
    steps: tuple[tuple[int, int], ...] = ()
    total_steps: Count = 0
    reason: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it looked at the whole run: a reason says that it did not."""
        if self.reason:
            return False
        reached = 0
        for first, last in self.steps:
            if first > reached + 1:
                return False
            reached = max(reached, last)
        return self.looked and (not self.steps or reached > self.total_steps)


class Fallback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator that a witness saw running on the CPU.

    Attributes:
        witness: Name of the witness.
        operator: As it names it: ``aten::heaviside.out``.
        count: How often.
        where: ``path:line`` of the user's call, if it is known.
        phase: Phase of the run, if it is known.
    """

    witness: Literal["warnings", "profiler"]
    operator: str
    count: Count
    where: str = ""
    phase: str = ""


class OperatorUse(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Calls of one operator on one device in one phase.

    Attributes:
        operator: As a dispatch mode shows it: ``aten.addmm.default``.
        device: Device type; ``cpu`` where the CPU alone did work of a model in a run
            that used an accelerator: parameters in a forward pass, or a backward pass.
        phase: Phase of the run; empty between phases.
        count: Calls.
        bytes: Size of its tensors on that device, arguments and results, over all
            calls: what a fallback would move.
        steps: In how many optimizer steps it was called.
        where: ``path:line`` of the first call.
        refused: How many of the calls raised because the device has no kernel or no
            float64, and the script went on: whatever took their place was not this
            operator there.
        out_of_memory: How many of the calls raised because the device had no memory
            for them.
    """

    operator: str
    device: str
    phase: str = ""
    count: Count
    bytes: Count
    steps: Count
    where: str = ""
    refused: Count = 0
    out_of_memory: Count = 0


class Transfer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies between host and device that the script asked for, at one place.

    Attributes:
        kind: ``to-device`` (an input that starts on the CPU), ``from-device`` (an
            explicit copy back), ``scalar-read`` (``item`` and the like).
        where: ``path:line`` of the user's call.
        non_blocking: Whether it was not to be waited for.
        count, bytes: Over all copies.
    """

    kind: Literal["to-device", "from-device", "scalar-read"]
    where: str
    non_blocking: bool = False
    count: Count
    bytes: Count


class BadIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Indices that a table does not have: an error on the CPU, zeros on MPS."""

    operator: str
    where: str
    low: int
    high: int
    size: Count


class Float64Site(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A place where a run met float64 or complex128 on the device it was steered to.

    MPS has neither: a run there raises at this place. A tensor that stays on the CPU
    is no such place.

    Attributes:
        how: ``moved`` (brought there), ``made`` (made there), ``computed`` (came out of
            an operator whose inputs there were narrower).
        operator: Which operator that was; empty for a move.
        dtype: ``float64`` or ``complex128``.
        where: ``path:line`` of the user's call.
        phase: Phase of the run, if it is known.
        count: How often.
    """

    how: Literal["moved", "made", "computed"]
    operator: str = ""
    dtype: str
    where: str = ""
    phase: str = ""
    count: Count


class Float64Search(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What an evidence pass looked at for float64.

    Attributes:
        operators: Operators and moves on the steered device. 0: the run steered
            nothing, so that nothing is known.
        reason: Why a place may be missing; empty if nothing speaks for it.
        sites: The places.
    """

    operators: Count = 0
    reason: str = ""
    sites: tuple[Float64Site, ...] = ()


class TensorForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dtype, shape and strides (in elements) of one argument."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()


class OperatorForm(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How an operator was called whose kernel depends on it (`verify.mps_kernels`).

    Attributes:
        operator: As a dispatch mode shows it.
        device: Device type.
        tensors: Its tensor arguments, in order.
        options: Whole numbers and truth values among its arguments, as text; of a pool
            also its ``output_size``, such as ``5,5``.
        where: ``path:line`` of the user's call.
        phase: Phase of the run, if it is known.
        count: How often.
    """

    operator: str
    device: str
    tensors: tuple[TensorForm, ...]
    options: dict[str, str] = {}
    where: str = ""
    phase: str = ""
    count: Count


class MappedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls at one place that name CUDA and were made for another device.

    Attributes:
        call: As the script wrote it, such as ``torch.zeros`` or ``Tensor.cuda``.
        asked: The device it named, such as ``cuda:0``; empty for functions of
            ``torch.cuda``, which name it by themselves.
        became: What was done in its place: a device, an answer, ``nothing``, or
            ``refused`` for a call that only CUDA can answer.
        where: ``path:line`` of the user's call.
        count: Calls.
    """

    call: str
    asked: str = ""
    became: str
    where: str = ""
    count: Count


class Devices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where tensors were seen, and what is known about CPU fallback.

    Attributes:
        requested: The device asked for: ``cpu``, ``cuda``, ``mps`` or ``as-is``.
        observed: Device types on which module inputs, parameters or recorded values
            were seen.
        fallback: ``none-possible`` (no accelerator was used), ``none-seen``, ``seen``
            or ``not-checked``.
        reason: How that was established, or why it was not checked.
        standin: Whether a stand-in device took the accelerator's place.
        witnesses: Who looked for CPU fallback, and where.
        fallbacks: Operators that were seen running on the CPU.
        operators: What the accelerator was given, and a model's work that the CPU did
            beside it, from an evidence pass.
        transfers: Copies the script asked for, from an evidence pass.
        bad_indices: Indices out of range, from an evidence pass.
        float64: Places that would raise on MPS, from an evidence pass.
        forms: How operators were called on an accelerator whose kernel on MPS depends
            on it, from an evidence pass.
        mapping: ``cuda=cpu`` or ``cuda=mps`` where the run was made with CUDA's calls
            mapped to that device; empty for any other run.
        mapped: The calls that were mapped, by place.
    """

    requested: str = "as-is"
    observed: tuple[str, ...] = ()
    fallback: Literal["none-possible", "none-seen", "seen", "not-checked"] = (
        "not-checked"
    )
    reason: str = ""
    standin: bool = False
    witnesses: tuple[Witness, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    bad_indices: tuple[BadIndex, ...] = ()
    float64: Float64Search = Float64Search()
    forms: tuple[OperatorForm, ...] = ()
    mapping: Literal["", "cuda=cpu", "cuda=mps"] = ""
    mapped: tuple[MappedCall, ...] = ()
