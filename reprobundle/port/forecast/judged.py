"""Judge the operators of a run on the CPU by the table of another torch version.

On the CPU torch chooses some operators that MPS is never asked for: `ON_MPS` names what
takes their place there (``aten/src/ATen/native``: RNN.cpp, transformers/attention.cpp,
transformers/transformer.cpp; checked against the operators of a device of type mps in
``tests/standin/test_forecast.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.forecast_report import (
    Certainty,
    Fit,
    ForecastOperator,
    MemoryFit,
    Place,
)
from reprobundle.port.forecast.causes import with_causes
from reprobundle.run.events import SteeredOperatorEvent
from reprobundle.verify.mps_operators import OperatorTable, base_name

# Choice of the CPU → what MPS is asked for, by base name.
ON_MPS = {
    "mkldnn_rnn_layer": "_lstm_mps",
    "mkldnn_rnn_layer_backward": "lstm_mps_backward",
    "_scaled_dot_product_flash_attention_for_cpu": (
        "_scaled_dot_product_attention_math_for_mps"
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": "bmm",
    "_transformer_encoder_layer_fwd": "linear",
    "_native_multi_head_attention": "linear",
    "_addmm_activation": "addmm",
    "mkldnn_linear": "linear",
    "mkldnn_convolution": "convolution_overrideable",
}
SCALAR_READ = "_local_scalar_dense"
MAC_GIGABYTES = (8, 16, 24, 32, 64)
TIGHT_SHARE = 0.6
_SURE: dict[Fit, Certainty] = {
    "cannot": "certain",
    "tight": "likely",
    "not-excluded": "unknown",
}
_ORDER: tuple[Place, ...] = (
    "missing",
    "always-cpu",
    "detour",
    "unknown",
    "composite",
    "native",
)
_NOTES: dict[Place, str] = {
    "missing": "raises; with the fallback variable it runs on the CPU",
    "always-cpu": "runs on the CPU whatever the variable says, and raises nothing",
    "unknown": "the table does not know it",
}


def judge_operators(
    rows: Iterable[SteeredOperatorEvent], table: OperatorTable, *, steered: bool
) -> list[ForecastOperator]:
    """Return one entry for each operator, the worst first.

    Args:
        rows: As recorded, those that count only.
        table: Of the target version.
        steered: Whether they ran on the device's tensors; if not, nobody knows whether
            MPS is asked for them.
    """
    groups: dict[tuple[str, str, str], list[SteeredOperatorEvent]] = {}
    for row in rows:
        groups.setdefault((row.operator, row.layer, row.unlike), []).append(row)
    found = [_judged(*key, mine, table, steered) for key, mine in groups.items()]
    order = sorted(found, key=lambda one: (_ORDER.index(one.place), -one.count))
    return with_causes(order)


def _judged(
    name: str,
    layer: str,
    unlike: str,
    rows: Sequence[SteeredOperatorEvent],
    table: OperatorTable,
    steered: bool,
) -> ForecastOperator:
    base = base_name(name) if name.startswith("aten.") else name
    other = layer or ON_MPS.get(base, "")
    if base == "_linalg_svd" and table.placement("aten.linalg_svd") == "always-cpu":
        # Up to 2.13 the operator above it goes to the CPU as a whole.
        other = "linalg_svd"
    place: Place = table.placement(f"aten.{other}.default" if other else name)
    note = _NOTES.get(place, "")
    certainty: Certainty = "likely" if other else "certain"
    if layer:
        note = f"a part of a layer; torch for macOS asks MPS for {layer}"
    elif other in ON_MPS.values():
        note = f"a choice of the CPU; MPS is asked for {other}"
    if place == "native" and base in table.detours:
        place, certainty = "detour", "likely"
        note = f"its kernel may leave for the CPU: {table.detours[base]}"
    # Each layout has kernels of its own; a dtype brings none where there is none.
    if unlike and (place != "missing" or unlike.startswith("layout")):
        place, note = "unknown", f"the table says nothing of tensors of {unlike}"
    if place == "unknown" or not steered:
        certainty = "unknown"
    return ForecastOperator(
        operator=name,
        on_mps=other,
        place=place,
        certainty=certainty,
        count=sum(row.count for row in rows),
        phases=tuple(dict.fromkeys(row.phase for row in rows if row.phase)),
        where=next((row.where for row in rows if row.where), ""),
        note=note,
    )


def refused_names(table: OperatorTable) -> Iterator[str]:
    """Yield every operator that raises on MPS, as a dispatch mode shows it."""
    for letters in table.letters:
        base, _, overload = letters.partition(".")
        name = f"aten.{base}.{overload or 'default'}"
        if base not in ON_MPS and table.placement(name) == "missing":
            is_svd = base == "_linalg_svd"
            if not (is_svd and table.placement("aten.linalg_svd") == "always-cpu"):
                yield name


def memory_fits(peak_bytes: int, wanted_bytes: int | None) -> tuple[MemoryFit, ...]:
    """Return the peak against the sizes of Macs, or against one size.

    Args:
        peak_bytes: A lower bound.
        wanted_bytes: The one size that is asked for; None for all.
    """
    sizes = [wanted_bytes] if wanted_bytes else [n << 30 for n in MAC_GIGABYTES]
    fits = [(n, _fit(peak_bytes, n)) for n in sizes]
    return tuple(
        MemoryFit(mac_bytes=n, fit=fit, certainty=_SURE[fit]) for n, fit in fits
    )


def _fit(peak_bytes: int, mac_bytes: int) -> Fit:
    if peak_bytes > mac_bytes:
        return "cannot"
    return "tight" if peak_bytes > TIGHT_SHARE * mac_bytes else "not-excluded"
