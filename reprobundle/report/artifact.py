"""What a paper's appendix says about a bundle, gathered from its record and policy.

Nothing is judged here, and nothing made up: what nobody stated or saw says so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.judged import BandResult, ClaimResult
from reprobundle.format.policy import Claim
from reprobundle.format.record import FileRead, Record
from reprobundle.report import text
from reprobundle.report.cited import cite_as
from reprobundle.report.concluded import NOT_RUN
from reprobundle.report.markdown_text import address, code, table, words
from reprobundle.report.page import Page

NOT_STATED = "not stated"
_MOST = 12
_HARDWARE = ("cpu.model", "gpu.name", "torch.cuda.device_name", "machine.model")
_SOFTWARE = (
    ("operating system", "os.name"),
    ("Python", "python.version"),
    ("torch", "torch.version"),
    ("CUDA", "torch.cuda.version"),
    ("NumPy", "numpy.version"),
)
_CLAIM_COLUMNS = (
    "claim",
    "statement",
    "command",
    "needs",
    "reference",
    "replay",
    "band",
    "result",
)


def check_list(page: Page) -> list[tuple[str, str]]:
    """Return the items of the check-list of cTuning that say something here."""
    if page.reference is None:
        return [("bundle", "cannot be read")]
    record = page.reference.record
    citation, policy = page.citation, page.policy
    metrics = [one.name for one in policy.metrics] if policy is not None else []
    return [
        ("program", code(shlex.join(record.command.argv))),
        ("model", words(_fact(record, "observed.models") or "none seen")),
        ("data set", data_set(record)),
        ("run-time environment", code(environment(record))),
        ("hardware", words(hardware(record))),
        ("run-time state", words(_seeds(record))),
        ("execution", words(_execution(record))),
        ("metrics", ", ".join(map(code, metrics)) or "the outputs themselves"),
        ("output", outputs(record)),
        ("experiments", ", ".join(map(code, _claim_names(page))) or "one"),
        ("disk space required", text.size(page.size_bytes)),
        ("memory required", _memory(record)),
        ("time to prepare", "not measured: it depends on the index and network"),
        ("time to complete", text.duration(record.elapsed_ns)),
        ("publicly available", _said(citation.url or citation.repository)),
        ("code licence", words(", ".join(citation.licenses) or NOT_STATED)),
        ("data licence", NOT_STATED),
        ("workflow framework", "reprobundle"),
        ("archived (DOI)", _said(citation.doi_url)),
        ("bundle id", code(page.report.bundle)),
    ]


def _said(url: str) -> str:
    """Return an address with who says so: a bundle does not know where it lies."""
    return f"{address(url)} (stated by the author, not checked)" if url else NOT_STATED


def programs(record: Record) -> tuple[str, ...]:
    """Return the project's files that the run read as a part of its program."""
    read = (
        one.member.removeprefix("project/") for one in record.reads if _is_code(one)
    )
    return tuple(sorted({*record.sources, *read}))


def _is_code(read: FileRead) -> bool:
    return read.member.startswith("project/")


def data_set(record: Record) -> str:
    """Return the inputs of a run, in one cell."""
    names = [code(_name(one)) for one in record.reads if _is_data(one)]
    return _listed(names) or "none read"


def data_rows(record: Record) -> list[tuple[str, str, str]]:
    """Return name, size and availability of each input of a run."""
    withheld = {one.name for one in record.withheld}
    return [
        (code(_name(one)), text.size(one.size_bytes), _availability(one, withheld))
        for one in record.reads
        if _is_data(one)
    ]


def software_rows(record: Record) -> list[tuple[str, str]]:
    """Return the software that a run used, as far as it is known."""
    known = ((label, _fact(record, name)) for label, name in _SOFTWARE)
    return [(label, code(value)) for label, value in known if value]


def environment(record: Record) -> str:
    """Return platform and versions of a run, in one line."""
    from reprobundle.report.markdown import machine

    return machine(record)


def hardware(record: Record) -> str:
    """Return what a run was made on, as far as it is known."""
    known = [_fact(record, name) for name in _HARDWARE]
    devices = ", ".join(record.devices.observed) or "none seen"
    return ", ".join([*filter(None, known), f"devices used: {devices}"])


def outputs(record: Record) -> str:
    """Return the outputs of a run, in one cell."""
    return _listed([code(one.name) for one in record.outputs]) or "none"


def cited(page: Page) -> str:
    """Return how the work is to be cited, as a paragraph; empty if nobody said."""
    citation = page.citation
    said = (words(cite_as(citation)), address(citation.doi_url))
    told = " ".join(filter(None, said))
    return f"Cite as: {told}" if told else ""


def claims_table(page: Page) -> str:
    """Return every claim with its command, needs, numbers and result.

    A claim without a band is shown, and its number is not judged.
    """
    commands = {one.name: one for one in page.policy.claims} if page.policy else {}
    rows = [
        row
        for one in page.report.claims
        for row in _claim_rows(one, commands.get(one.name))
    ]
    if not rows:
        rows = [_unjudged(one) for one in commands.values()]
    return table(_CLAIM_COLUMNS, rows)


def steps(page: Page) -> str:
    """Return what an evaluator types, as a block of commands."""
    file = shlex.quote(page.report.file)
    lines = [
        "pip install reprobundle",
        f"reprobundle verify {file}        # whole and complete; runs nothing",
        f"reprobundle replay {file} --env fresh",
        f"reprobundle report --style aec {file}",
    ]
    names = _claim_names(page)
    if "smoke" in names:
        lines.insert(2, f"reprobundle replay {file} --claims smoke")
    if len(names) > 1:
        lines.insert(-1, f"reprobundle replay {file} --claims all")
    return "\n".join(f"    {line}" for line in lines)


def _claim_rows(one: ClaimResult, stated: Claim | None) -> Iterator[Sequence[str]]:
    command = code(shlex.join(stated.command)) if stated and stated.command else ""
    head = (
        code(one.name),
        words(one.statement) or "over all outputs",
        command or "the main command",
        _needs(one.minutes, one.disk_bytes),
    )
    if not one.bands:
        why = "" if one.result == NOT_RUN else "no band: shown, not judged by a number"
        yield (*head, "", "", why, words(one.result))
    for band in one.bands:
        yield (*head, *_band_cells(band), words(_band_result(one, band)))


def _unjudged(claim: Claim) -> Sequence[str]:
    command = code(shlex.join(claim.command)) if claim.command else "the main command"
    bands = "; ".join(
        f"{one.metric} {_limits(one.least, one.most)}" for one in claim.bands
    )
    return (
        code(claim.name),
        words(claim.statement) or "over all outputs",
        command,
        _needs(claim.minutes, claim.disk_bytes),
        "",
        "",
        words("; ".join(bands)),
        NOT_RUN,
    )


def _band_cells(band: BandResult) -> tuple[str, str, str]:
    return (
        words(f"{band.metric} {_number(band.reference)}"),
        words(f"{band.metric} {_number(band.replay)}"),
        words(_limits(band.least, band.most)),
    )


def _band_result(one: ClaimResult, band: BandResult) -> str:
    said = {
        "within": "in its band",
        "outside": "outside its band",
        "not-judged": "not judged",
        "not-found": "not found",
    }[band.result]
    return f"{one.result}; {said}"


def _number(value: float | str | None) -> str:
    return "not found" if value is None else text.number(float(value))


def _limits(least: float | None, most: float | None) -> str:
    if least is None and most is None:
        return "no band"
    low = "-∞" if least is None else f"{least:g}"
    high = "∞" if most is None else f"{most:g}"
    return f"{low} to {high}"


def _needs(minutes: float | None, disk_bytes: int | None) -> str:
    known = [
        f"{minutes:g} min" if minutes is not None else "",
        text.size(disk_bytes) if disk_bytes is not None else "",
    ]
    return ", ".join(filter(None, known)) or NOT_STATED


def _claim_names(page: Page) -> list[str]:
    return [one.name for one in page.policy.claims] if page.policy is not None else []


def _seeds(record: Record) -> str:
    if record.command.seed is not None:
        return f"seeded with {record.command.seed} before the program starts"
    calls = len(record.randomness.calls)
    return f"{text.plural(calls, 'seed call')} in the program" if calls else "no seed"


def _execution(record: Record) -> str:
    ranks = f", {len(record.ranks)} ranks" if record.ranks else ""
    steps = [phase for phase in record.phases if phase.name == "optimizer"]
    count = f", {steps[0].count:,} optimizer steps" if steps else ""
    return f"one command{ranks}{count}; exit status {record.outcome.exit_status}"


def _memory(record: Record) -> str:
    known = (
        ("host", record.memory.peak_rss_bytes.value),
        ("device", record.memory.peak_device_bytes.value),
    )
    told = [f"{text.size(it)} {where}" for where, it in known if isinstance(it, int)]
    return ", ".join(told) or "unknown"


def _is_data(read: FileRead) -> bool:
    return bool(read.blake3) and not _is_code(read)


def _name(read: FileRead) -> str:
    return read.origin or read.path.removeprefix("project:")


def _availability(read: FileRead, withheld: Iterable[str]) -> str:
    if read.member:
        return "in the bundle"
    if _name(read) in withheld:
        return "kept by its holder; the bundle has size and digest"
    return "not in the bundle: size and digest only"


def _fact(record: Record, name: str) -> str:
    fact = record.environment.get(name)
    if fact is None or fact.value is None:
        return ""
    return ", ".join(fact.value) if isinstance(fact.value, tuple) else str(fact.value)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more:,} more" if more > 0 else "")
