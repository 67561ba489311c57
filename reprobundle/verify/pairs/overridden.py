"""Whether a run kept what it was asked for, or its script had the last word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from reprobundle.format.difference_report import Conclusion
from reprobundle.format.record import Record

# Switch → facts of torch that it decides. The recorder sets it before it reads them,
# so such a fact that is read again at the end was changed by the script.
DECIDES: Mapping[str, tuple[str, ...]] = {
    "allow_tf32": (
        "torch.cuda.matmul.fp32_precision",
        "torch.cudnn.*.fp32_precision",
        "torch.*.allow_tf32",
        "torch.matmul_precision",
    ),
    "matmul_precision": ("torch.matmul_precision", "torch.*.matmul.fp32_precision"),
    "reduced_precision_sums": ("torch.cuda.matmul.*reduced_precision*",),
    "deterministic": ("torch.deterministic", "torch.deterministic_warn_only"),
    "benchmark": ("torch.cudnn.benchmark",),
    "threads": ("torch.num_threads",),
}
_REQUESTS = ("shapes", "round")


def overridden(left: Record, right: Record) -> Iterator[Conclusion]:
    """Yield what was asked for and not kept, or not listened to, on either side."""
    for side, record in (("left", left), ("right", right)):
        for name, patterns in DECIDES.items():
            changed = [
                fact.removeprefix("end.")
                for fact in record.environment
                if fact.startswith("end.")
                and any(fnmatchcase(fact[4:], pattern) for pattern in patterns)
            ]
            if f"asked.{name}" in record.environment and changed:
                yield Conclusion(
                    rule="asked-not-kept",
                    text=f"the {side} run was asked for {name}, and its script set it "
                    "to something else: the pair shows nothing about it",
                    evidence=tuple(changed),
                )
        for name in _REQUESTS:
            if f"asked.{name}" in record.environment and not listens(record, name):
                yield Conclusion(
                    rule="asked-not-heard",
                    text=f"the {side} run was asked for {name}, and nothing shows that "
                    "its command listens",
                    evidence=(f"no {{{name}}} in the command, no call of reprobundle",),
                )


def listens(record: Record, name: str) -> bool:
    """Whether a command takes a request: in its arguments, or by asking for it."""
    placed = any(f"{{{name}}}" in part for part in record.command.argv)
    return placed or f"heard.{name}" in record.environment
