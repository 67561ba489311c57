"""What `pack` says after it wrote a bundle."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.record import Fact, Output, Record, Remark
from reprobundle.pack.options import Packed
from reprobundle.report import text

LISTED = 12


def render_packed(packed: Packed) -> str:
    """Return a few lines: inputs, outputs, what is known, what is missing, the file."""
    record = packed.reference
    lines = [
        f"command    exit {record.outcome.exit_status} after "
        f"{text.duration(record.elapsed_ns)}, peak {_peak(record)}",
        *_listed("input", list(_inputs(record))),
        *_listed("output", [_output(output) for output in record.outputs]),
        f"seeds      {_seeds(record)}",
        f"env        {_environment(record)}",
        f"repeat     {_repeat(packed)}",
        *(_remark(remark) for remark in record.remarks if remark.severity != "gap"),
    ]
    if packed.left_out:
        lines.append(
            f"left out   {text.plural(len(packed.left_out), 'large file')} that "
            f"nothing read, such as {text.safe(packed.left_out[0])} "
            "(add with --input)"
        )
    name = text.safe(packed.path.name)
    lines.append(
        f"wrote      {text.safe(str(packed.path))}  "
        f"{text.size(packed.sealed.size_bytes)}, "
        f"{text.plural(len(packed.sealed.members), 'member')}"
    )
    lines.append(f"id         {packed.sealed.id}")
    lines.append(f"next       reprobundle verify {name}")
    return "\n".join(lines)


def _remark(remark: Remark) -> str:
    where = f" {text.safe(remark.where)}" if remark.where else ""
    return f"{remark.severity:<10} {remark.id}{where}: {text.safe(remark.text)}"


def _peak(record: Record) -> str:
    peak = record.memory.peak_rss_bytes.value
    return text.size(peak) if isinstance(peak, int) else "unknown"


def _listed(label: str, entries: list[str]) -> list[str]:
    shown = [f"{label:<10} {entry}" for entry in entries[:LISTED]]
    if len(entries) > LISTED:
        shown.append(f"{label:<10} and {len(entries) - LISTED} more")
    return shown


def _inputs(record: Record) -> Iterator[str]:
    for read in record.reads:
        if read.member.startswith(("inputs/", "external/")) or not read.member:
            kept = "" if read.member else ", pinned by digest only"
            yield (
                f"{text.safe(read.path)}  {text.size(read.size_bytes)}, "
                f"blake3 {text.digest(read.blake3)}{kept}"
            )


def _output(output: Output) -> str:
    shapes = ", ".join(
        f"{text.safe(array.dtype)} {list(array.shape)}" for array in output.arrays[:2]
    )
    more = (
        f" and {len(output.arrays) - 2} more arrays" if len(output.arrays) > 2 else ""
    )
    inner = f"  {shapes}{more}" if shapes else ""
    size = text.size(output.size_bytes)
    return f"{text.safe(output.name)}  {output.format}, {size}{inner}"


def _seeds(record: Record) -> str:
    calls = record.randomness.calls
    given = record.randomness.seed
    parts = [] if given is None else [f"--seed {given}"]
    parts.extend(f"{call.function}({call.value})" for call in calls[:3])
    if len(calls) > 3:
        parts.append(f"and {len(calls) - 3} more calls")
    return text.safe(", ".join(parts)) or "none set"


def _environment(record: Record) -> str:
    names = ("python.version", "torch.version", "os.name", "cpu.model")
    return ", ".join(
        f"{name.partition('.')[0]} {_known(record.environment.get(name))}"
        for name in names
    )


def _known(fact: Fact | None) -> str:
    return (
        "unknown" if fact is None or fact.value is None else text.safe(str(fact.value))
    )


def _repeat(packed: Packed) -> str:
    if packed.repeat is None:
        return "not checked: the repeat pass was left out"
    count = len(packed.repeat.outputs)
    if packed.repeatable:
        same = {output.name: output.blake3 for output in packed.reference.outputs}
        equal = sum(same.get(o.name) == o.blake3 for o in packed.repeat.outputs)
        rest = "" if equal == count else ", the others within tolerance"
        return f"{equal} of {text.plural(count, 'output')} bit-identical{rest}"
    return "NOT REPEATABLE on this machine: two runs differ beyond the tolerance"
