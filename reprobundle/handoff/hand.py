"""One hand-off, step by step; every step may be asked for again and does no harm.

look → copy → install → examine → start → follow → fetch. What has been done is seen on
the other machine and not believed from here, so a hand-off that was cut off anywhere
goes on where it was.
"""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.doctor_report import DoctorReport
from reprobundle.format.policy import DataRules
from reprobundle.handoff import state as known
from reprobundle.handoff.copying import Say, copy_there, patiently
from reprobundle.handoff.data_rules import hint, require_allowed
from reprobundle.handoff.encryption import Encryption, encrypted_copy
from reprobundle.handoff.errors import UnfitMachineError
from reprobundle.handoff.findings import BROKEN, Finding, findings
from reprobundle.handoff.load import make_load
from reprobundle.handoff.preflight import (
    COPIES,
    TOOL_BYTES,
    UNPACKED,
    Looked,
    look,
    require_room,
    warnings,
)
from reprobundle.handoff.ssh import Agent
from reprobundle.handoff.state import Place, State
from reprobundle.handoff.wish import BUNDLE_NAME, RECORD_NAME, Wish
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.data_rules import rules_of

DOCTOR_SECONDS = 600
_PROGRAM = ("{folder}/venv/bin/python", "-m", "reprobundle")


class HandOff:
    """A hand-off while this process drives it.

    Attributes:
        state: What is known of it, always as written down.
        notes: What the record of the replay will say about it.
    """

    def __init__(self, wish: Wish, plan: ReplayPlan, *, say: Say) -> None:
        self.wish = wish
        self.plan = plan
        self.say = say
        self.encryption = Encryption.of(wish)
        rules = rules_of(plan.policy)
        self.notes = self._allowed(rules)
        self.state = self._begun(rules)

    @property
    def agent(self) -> Agent:
        """The other machine; it has been looked at before."""
        return agent_of(self.state)

    def _allowed(self, rules: DataRules | None) -> list[dict[str, str]]:
        """Return what the record has to say about a policy that is overridden."""
        overridden = require_allowed(
            rules,
            self.wish.destination,
            today=known.day_in(0),
            encrypted=self.encryption is not None,
            override=self.wish.override,
        )
        advice = hint(rules, encrypted=self.encryption is not None)
        if advice:
            self.say(advice)
        if not overridden:
            return []
        text = f"{'; '.join(overridden)}; overridden: {self.wish.override}"
        return [{"id": "handoff-policy-overridden", "where": "", "text": text}]

    def _begun(self, rules: DataRules | None) -> State:
        wish = self.wish
        name = known.name_of(self.plan.bundle, wish.destination)
        before = known.load(name)
        if before is not None and before.root != wish.root and _lies_there(before):
            raise BadCallError(
                f"hand-off {name} lies in {before.root} there, not in {wish.root}",
                advice=f"name that folder, or: reprobundle handoff clean {name}",
            )
        state = before or State(
            name=name,
            bundle=self.plan.bundle,
            path="",
            destination=wish.destination.name,
            root=wish.root,
            began=known.now(),
        )
        days = rules.delete_after_days if rules else None
        return known.save(
            msgspec.structs.replace(
                state,
                path=str(wish.bundle.absolute()),
                ssh_options=wish.destination.options,
                port=wish.destination.port,
                root=wish.root,
                data_class=rules.data_class if rules else "",
                delete_by=state.delete_by
                or (known.day_in(days) if days is not None else ""),
                overridden=wish.override if self.notes else "",
            )
        )

    def patiently(self, action: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do something that may lose its connection."""
        return patiently(action, retries=self.wish.retries, say=self.say)

    def prepare(self) -> dict[str, Any]:
        """Bring everything there that is missing, and start; return the status.

        Raises:
            BadCallError: A run of other options is there, or one that came to no
                verdict and is not to be started again.
            EnvironmentUnusableError: A step cannot be taken; its message says which.
        """
        found: Looked = self.patiently(
            lambda: look(self.wish, self.plan, self.state.far_name)
        )
        self.state = known.save(
            msgspec.structs.replace(self.state, python=found.python.path)
        )
        self.say(found.describe())
        status = self.status()
        if status["state"] != "none" and not self.wish.again:
            self._require_same(status)
            self.say(f"the replay is there already: {status['state']}")
            return status
        for warning in warnings(found, self.plan):
            self.say(f"warning: {warning}")
        self._bring(found)
        self._examine()
        self._start()
        return self.status()

    def _require_same(self, status: dict[str, Any]) -> None:
        """Refuse to go on with a run that is not the one asked for.

        Raises:
            BadCallError: It has other options, or ended without a verdict.
        """
        name = self.state.name
        request = status.get("asked") or {}
        asked = request.get("options")
        if self.encryption is not None and not request.get("remove"):
            raise BadCallError(
                f"the bundle of hand-off {name} lies there as it is, not encrypted",
                advice=f"remove it: reprobundle handoff clean {name}; then call again",
            )
        if asked is not None and list(self._options()) != list(asked):
            raise BadCallError(
                f"hand-off {name} was started with {' '.join(asked)}, not with "
                f"{' '.join(self._options())}",
                advice="call it with the same options, or start another run: --again",
            )
        if status["state"] in BROKEN:
            told = findings(status)
            raise BadCallError(
                f"hand-off {name} has no verdict: {told[0].text}",
                advice=f"reprobundle handoff logs {name} shows its output; --again "
                "starts another run",
            )

    def _bring(self, found: Looked) -> None:
        """Copy what is missing and make the environment of our own program."""
        wish = self.wish
        kept = known.handoffs_root() / self.state.name
        with encrypted_copy(self.encryption, wish.bundle, kept, self.say) as bundle:
            load = make_load(wish, bundle, found, self.say)
            locked = sum(f.size_bytes for f in load.files if "locked/" in f.path)
            unpacked = TOOL_BYTES + UNPACKED * locked + COPIES * self.plan.files_bytes
            require_room(found, load.size_bytes, wish.destination.name, unpacked)
            folder = str(found.facts["folder"])
            self._note_places(folder, bundle.name.removeprefix(wish.bundle.name))
            copy_there(self.agent, load.files, retries=wish.retries, say=self.say)
        self.locked = load.locked
        done = self.patiently(lambda: self.agent.ask("install", wheels=list(load.tool)))
        if done["installed"]:
            self.say("reprobundle is installed there, in that folder")
        if done.get("changed"):
            self.say("its Python or its packages had changed since: made anew")

    def _note_places(self, folder: str, suffix: str) -> None:
        host = f"{self.state.destination}:{folder}"
        made = known.now()
        places = [
            Place(kind="bundle", where=f"{host}/{BUNDLE_NAME}{suffix}", made=made),
            Place(kind="program", where=f"{host}/tool", made=made),
            Place(kind="program", where=f"{host}/venv", made=made),
            Place(kind="run", where=f"{host}/job", made=made),
            Place(kind="run", where=f"{host}/t", made=made),
        ]
        if self.wish.fresh:
            places += [
                Place(kind="packages", where=f"{host}/locked", made=made),
                Place(kind="packages", where=f"{host}/c", made=made),
            ]
        if self.encryption is not None:
            places.append(
                Place(kind="bundle", where=f"{host}/{BUNDLE_NAME}", made=made)
            )
        self.state = known.save(self.state.with_places(*places))

    def _examine(self) -> None:
        """Ask `doctor` there, and refuse a device that cannot be had.

        Raises:
            UnfitMachineError: MPS is wanted of an interpreter that has none.
        """
        wish = self.wish
        python = "{folder}/venv/bin/python" if wish.fresh else wish.environment
        argv = [*_PROGRAM, "doctor", "--json", "--python", python]
        done = self.patiently(
            lambda: self.agent.ask("run", argv=argv, seconds=DOCTOR_SECONDS)
        )
        try:
            report = msgspec.json.decode(done["out"], type=DoctorReport)
        except msgspec.DecodeError:
            words = str(done["err"]).strip().rpartition("\n")[2]
            raise UnfitMachineError(
                f"our program does not run on {wish.destination.name}: {words}",
                advice="call again with another interpreter: --python PATH",
            ) from None
        for one in _problems(report, fresh=wish.fresh):
            self.say(f"doctor: {one}")
        if "mps" in _devices(wish) and not wish.fresh and report.mps != "usable":
            causes = [cause for cause in report.causes if cause.answer == "yes"]
            remedy = causes[0].remedy if causes else ""
            raise UnfitMachineError(
                f"MPS cannot be had on {wish.destination.name}: {report.answer}",
                advice=remedy or "see: reprobundle doctor, run there",
            )

    def _options(self) -> tuple[str, ...]:
        return ("--env", self.wish.environment, *self.wish.options)

    def _start(self) -> None:
        """Start the replay; when two try at once, one of them does."""
        wheels = ("--wheels", "{folder}/locked") if self.locked else ()
        argv = [
            *(*_PROGRAM, "replay", f"{{folder}}/{BUNDLE_NAME}", "--yes"),
            *("--record", f"{{folder}}/{RECORD_NAME}"),
            *self._options(),
            *wheels,
        ]
        before, remove = (
            self.encryption.steps() if self.encryption is not None else ([], [])
        )
        done = self.patiently(
            lambda: self.agent.ask(
                "start",
                argv=argv,
                before=before,
                remove=remove,
                options=list(self._options()),
                python="" if self.wish.fresh else self.wish.environment,
                bundle=self.plan.bundle,
                notes=self.notes,
                again=self.wish.again,
            )
        )
        self.say(
            "the replay runs there now, and goes on without this connection"
            if done["started"]
            else "the replay was started before"
        )
        for note in done.get("notes", ()):
            self.say(f"{note['id']}: {note['text']}")

    def status(self) -> dict[str, Any]:
        """Return how the run stands, asked now."""
        found: dict[str, Any] = self.patiently(lambda: self.agent.ask("status"))
        return found


def _problems(report: DoctorReport, *, fresh: bool) -> Iterator[str]:
    for one in report.checks:
        # The environment that will run it does not exist yet.
        if one.state == "problem" and not (fresh and one.group == "torch"):
            remedy = f"; {one.remedy}" if one.remedy else ""
            yield f"{one.name}: {one.got}{remedy}"


def _devices(wish: Wish) -> str:
    options = wish.options
    with contextlib.suppress(ValueError, IndexError):
        return options[options.index("--device") + 1]
    return ""


def _lies_there(state: State) -> bool:
    """Whether a copy on the other machine has not been seen to be gone."""
    host = f"{state.destination}:"
    return any(not one.removed and one.where.startswith(host) for one in state.places)


def agent_of(state: State) -> Agent:
    """Return the other machine of a hand-off.

    Raises:
        BadCallError: It was never looked at.
    """
    if not state.python:
        raise BadCallError(
            f"hand-off {state.name} never reached its machine",
            advice=f"call again: reprobundle handoff {state.destination} {state.path}",
        )
    return Agent(state.reached, state.python, state.root, state.far_name)


def status_of(state: State, *, retries: int, say: Say) -> dict[str, Any]:
    """Return how the run of a hand-off stands, asked now."""
    agent = agent_of(state)
    found: dict[str, Any] = patiently(
        lambda: agent.ask("status"), retries=retries, say=say
    )
    return found


def remember(state: State, status: dict[str, Any]) -> tuple[State, tuple[Finding, ...]]:
    """Write down what a status shows, and return it."""
    found = findings(status)
    texts = tuple(f"{one.name}: {one.text}" for one in found)
    return known.save(msgspec.structs.replace(state, findings=texts)), found


def follow(
    state: State,
    *,
    offset: int = 0,
    wait: bool = True,
    retries: int,
    say: Say,
    show: Callable[[str], None],
) -> None:
    """Show the log of the run, and go on until it ends.

    Args:
        state: The hand-off.
        offset: Bytes of the log that were shown before.
        wait: Go on while it runs.
        retries: How often a lost connection is made again.
        say: Told of lost connections.
        show: Given the text, as it comes.

    Raises:
        ConnectionLostError: It was lost too often; the run goes on there.
    """
    agent = agent_of(state)
    shown = [offset]
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def once() -> None:
        with agent.asked("logs", offset=shown[0], follow=wait) as session:
            session.end_input()
            while "end" not in (answer := session.answer()):
                for block in session.read(answer["bytes"]):
                    shown[0] += len(block)
                    show(decoder.decode(block))

    patiently(once, retries=retries, say=say, progress=lambda: shown[0])


def record_file(state: State) -> Path:
    """Return where the record of a hand-off is put here before it is attached."""
    return known.handoffs_root() / state.name / "record.rpr.zip"
