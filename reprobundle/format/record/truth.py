"""How completely a float64 run was one."""

import msgspec

from reprobundle.format.record.values import Count


class LeftOperator(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Calls of one operator that were not computed in float64.

    Attributes:
        operator: As a dispatch mode shows it, without ``aten.``; empty for a whole
            process in which nothing was promoted.
        why: What was short about it, in words.
        count: Calls, or processes.
    """

    operator: str
    why: str
    count: Count


class Promotion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the recorder promoted to float64, over all processes.

    Attributes:
        operators: Operators that ran under the promotion.
        entered: Tensors of short floats that came from outside (files, arrays) and
            were cast when an operator read them.
        draws: Random draws, made in the dtype of the reference and cast.
        left: Calls that were not promoted: a run that has any is no truth.
    """

    operators: Count = 0
    entered: Count = 0
    draws: Count = 0
    left: tuple[LeftOperator, ...] = ()
