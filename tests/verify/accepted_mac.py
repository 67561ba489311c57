"""A bundle that was replayed on a Mac with all evidence there is, and less of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from reprobundle.format.acceptance_record import Reports
from reprobundle.format.doctor_report import DoctorCheck, DoctorReport
from reprobundle.format.forecast_report import (
    ForecastOperator,
    ForecastReport,
    ForecastSite,
)
from reprobundle.format.policy import Intent
from reprobundle.format.record import Fact, Memory, OutputRole
from reprobundle.format.scan_report import ScanReport
from reprobundle.verify.defaults import default_policy
from tests.verify.builder import (
    ENVIRONMENT,
    OUTPUTS,
    WITNESSES,
    Bench,
    Run,
    on,
)

BUILD = "25D125"
META = b'{"columns": ["x", "y"], "units": "m"}\n'
ALL_OUTPUTS = {**OUTPUTS, "out/meta.json": META}
ROLES: dict[str, OutputRole] = {
    "out/metrics.json": "metrics",
    "out/meta.json": "metadata",
}


def fact(value):
    return Fact(value=value, source="test")


FACTS = {
    **ENVIRONMENT,
    "torch.version": fact("2.13.0"),
    "os.name": fact("macOS"),
    "os.version": fact("26.3.1"),
    "os.build": fact(BUILD),
    "mps.graph_version": fact("6.4.2"),
    "machine.model": fact("Mac16,10"),
    "cpu.model": fact("Apple M4"),
    "torch.mps.recommended_max_bytes": fact(1_000_000),
    "replay.environment": fact("fresh"),
    "replay.environment.commands": fact(("uv venv", "uv pip install")),
    "replay.environment.differences": fact(0),
    "system.packages": fact(("xcode tools 26.2",)),
}
FITS = Memory(
    series="memory.json",
    samples=2,
    with_pressure=2,
    peak_rss_bytes=Fact(value=2000, source="largest sample"),
    peak_device_bytes=Fact(value=900_000, source="mps"),
    rounds="step",
    course="flat",
)
INTENT = Intent(purpose="ship it on a Mac", accepting_platforms=("macos-mps",))
LISTENED = on("mps", "not-checked", witnesses=WITNESSES[:1])


def scan(action="nothing-found", *, status=0, rule="a-rule", **changes):
    report = ScanReport(
        target="a.rpb.zip",
        action=action,
        rule=rule,
        reason="as the scan says",
        findings=(),
        mentions=(),
        not_read=(),
        files=3,
        exit_status=status,
    )
    return msgspec.structs.replace(report, **changes)


def doctor(**changes):
    report = DoctorReport(
        machine=f"macOS 26.3.1 {BUILD} arm64, Apple M4",
        python="python",
        mps="usable",
        answer="a tensor was computed on MPS",
        causes=(),
        checks=(
            DoctorCheck(group="folders", name="cache", state="ok", got="writable"),
        ),
        exit_status=0,
    )
    return msgspec.structs.replace(report, **changes)


def forecast(**changes):
    report = ForecastReport(
        command=("python", "train.py"),
        torch="2.13.0",
        ran_with="2.13.0",
        steered=True,
        steps=3,
        operators=(),
        float64=(),
        scalar_reads=0,
        peak_bytes=10,
        memory=(),
        not_covered=(),
        exit_status=0,
    )
    return msgspec.structs.replace(report, **changes)


MISSING = ForecastOperator(
    operator="aten.x",
    on_mps="aten.x",
    place="missing",
    certainty="certain",
    count=3,
    phases=("forward",),
    where="{project}/train.py:4",
)
FLOAT64 = ForecastSite(
    where="{project}/train.py:5", how="made", dtype="float64", operator="", count=1
)


@dataclass
class Mac:
    """What was done on the Mac: two calls of replay, each measured and traced."""

    facts: dict[str, Fact] = field(default_factory=lambda: dict(FACTS))
    memory: Memory = FITS
    intent: Intent = INTENT
    calls: int = 2
    traced: bool = True
    measured: object = LISTENED
    evidence: object = field(default_factory=lambda: on("mps"))
    outputs: dict[str, bytes] = field(default_factory=lambda: dict(ALL_OUTPUTS))
    roles: dict[str, OutputRole] = field(default_factory=lambda: dict(ROLES))
    changes: dict[str, object] = field(default_factory=dict)
    scan: ScanReport | None = field(default_factory=scan)
    doctor: DoctorReport | None = field(default_factory=doctor)
    forecast: ForecastReport | None = None

    def but(self, **changes) -> Mac:
        return replace(self, **changes)

    def without(self, *names) -> Mac:
        kept = {name: told for name, told in self.facts.items() if name not in names}
        return self.but(facts=kept)

    def made(self, folder) -> Bench:
        """Return the bundle with its replays."""
        policy = msgspec.structs.replace(default_policy(), intent=self.intent)
        bench = Bench(
            folder, policy=policy, reference=self._run(ALL_OUTPUTS), repeat=None
        ).pack()
        for call in range(self.calls):
            self.replayed(bench, f"{call:016x}")
        return bench

    def replayed(self, bench: Bench, occasion: str, **changes) -> list[str]:
        """Attach the records of one call of replay and return their ids."""
        common = {
            "occasion": occasion,
            "platform": "darwin",
            "phases": (),
            "environment": self.facts,
            **self.changes,
            **changes,
        }
        ids = [
            bench.replay(
                self._run(self.outputs),
                **{"memory": self.memory, "devices": self.measured, **common},
            )
        ]
        if self.traced:
            ids.append(
                bench.replay(
                    self._run(self.outputs),
                    **{"devices": self.evidence, **common, "pass_name": "evidence"},
                )
            )
        return ids

    def _run(self, outputs) -> Run:
        return Run(dict(outputs), roles=dict(self.roles))

    def reports(self, bundle: str) -> Reports:
        """Return the reports of other verbs, about this bundle unless they say so."""

        def about(report):
            if report is None or report.bundle:
                return report
            return msgspec.structs.replace(report, bundle=bundle)

        return Reports(
            scan=about(self.scan),
            doctor=about(self.doctor),
            forecast=about(self.forecast),
        )

    def assessed(self, folder):
        """Return the assessment of all that."""
        bench = self.made(folder)
        report = bench.verify(acceptance=True, reports=self.reports(bench.id))
        assert report.assessment is not None, report.reasons
        return report.assessment


def points(assessment):
    """Return the points by id."""
    return {one.id: one for one in assessment.points}


def answers(assessment):
    """Return what each rule answered."""
    return {one.rule: one.answer for one in assessment.recommendation.answers}
