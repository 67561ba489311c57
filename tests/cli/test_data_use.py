"""Rules about data, as replay, extract, cat, export and copies keep to them."""

from __future__ import annotations

import json
import shutil
import zipfile
from functools import partial

import msgspec
import pytest

from reprobundle.cli import run
from reprobundle.errors import BadCallError
from reprobundle.format.policy import DataRules
from tests.cli.conftest import make_project, reprobundle
from tests.verify.builder import Bench

REFUSED = "the policy sealed in the bundle is against"
PROCESSOR = "nobody@nowhere.example"
REASON = "agreed on 3 December"


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def call(capsys):
    def called(*arguments):
        status = run([*map(str, arguments)])
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return called


@pytest.fixture
def made(tmp_path):
    """Return a function that makes a bundle with rules about its data."""

    def make(**stated):
        bench = Bench(tmp_path)
        rules = DataRules(data_class="clinical", **stated)
        bench.policy = msgspec.structs.replace(bench.policy, data=rules)
        return bench.pack().path

    return make


@pytest.fixture
def foreign(made):
    """A bundle whose data may be processed elsewhere only."""
    return made(processors=(PROCESSOR,), delete_after_days=30, reason="approval 12/26")


def test_extract_is_refused_before_anything_is_written(foreign, tmp_path, call):
    status, _, err = call("extract", foreign, "--into", tmp_path / "x")
    assert status == 20
    assert f"{REFUSED} extracting here: it names as processors {PROCESSOR}" in err
    assert "(approval 12/26)" in err
    assert not (tmp_path / "x").exists()
    assert call("copies")[1].startswith("no copy is known")


def test_a_day_too_late_is_refused(made, tmp_path, call):
    late = made(process_until="2020-02-29")
    status, _, err = call("extract", late, "inputs/data.csv", "--into", tmp_path / "x")
    assert (status, "could be processed until 2020-02-29" in err) == (20, True)


def test_extract_with_a_reason_is_shown_and_noted(foreign, tmp_path, call):
    into = tmp_path / "x"
    status, _, err = call(
        "extract", foreign, "--into", into, "--override-policy", REASON
    )
    assert status == 0
    assert "data: clinical; transfer allowed" in err
    assert f"overridden: {REASON}" in err
    status, out, _ = call("copies", foreign)
    assert status == 0
    assert f"members in {into}, made " in out
    assert ": there, to be gone by " in out
    assert f"overridden: {REASON}" in out
    shutil.rmtree(into)
    assert "not there any more (removed or moved: not known)" in call("copies")[1]


def test_whoever_hands_it_over_to_a_processor_need_not_be_one(foreign, call):
    way = ("--yes", "--retries", "0", "--ssh-option", "ProxyCommand=false")
    status, _, err = call("handoff", PROCESSOR, foreign, *way)
    assert (status, REFUSED in err) == (20, False)
    assert f"the connection to {PROCESSOR} was lost" in err
    status, _, err = call("handoff", "somebody@else.example", foreign, *way)
    assert (status, "and not somebody@else.example" in err) == (20, True)


def test_what_holds_no_data_is_always_given(foreign, tmp_path, call):
    status, out, _ = call("cat", foreign, "policy.json")
    assert (status, PROCESSOR in out) == (0, True)
    into = tmp_path / "x"
    free = ("README.txt", "policy.json", "lock/environment.json")
    assert call("extract", foreign, *free, "--into", into)[0] == 0
    assert call("copies")[1].startswith("no copy is known")


def test_printing_data_is_asked_for_and_noted(foreign, call):
    status, out, err = call("cat", foreign, "inputs/data.csv")
    assert (status, out, REFUSED in err) == (20, "", True)
    status, out, _ = call(
        "cat", foreign, "inputs/data.csv", "--override-policy", REASON
    )
    assert (status, out.startswith("x,y")) == (0, True)
    noted = json.loads(call("copies", "--json")[1])["here"]
    assert [one["where"] for one in noted] == ["standard output (inputs/data.csv)"]
    assert noted[0]["there"] is None


@pytest.mark.parametrize("form", ["inline", "bagit"])
@pytest.mark.parametrize(
    ("transfer", "words"),
    [
        ("forbidden", "it forbids any transfer"),
        ("encrypted", "it wants the bundle encrypted before transfer"),
    ],
)
def test_an_export_is_a_copy_that_travels(form, transfer, words, made, tmp_path, call):
    path, target = made(transfer=transfer), tmp_path / "out"
    status, _, err = call("export", form, path, "-o", target)
    assert (status, f"{REFUSED} an export here: {words}" in err) == (20, True)
    assert not target.exists()
    status, *_ = call("export", form, path, "-o", target, "--override-policy", REASON)
    assert status == 0
    assert f"export in {target}, made" in call("copies")[1]
    # To look at the data here is no transfer.
    assert call("cat", path, "inputs/data.csv")[0] == 0


def test_a_folder_that_was_there_before_is_no_copy(made, tmp_path, call):
    path, target = made(delete_after_days=30), tmp_path / "there"
    target.mkdir()
    status, _, err = call("export", "bagit", path, "-o", target)
    assert (status, "exists already" in err) == (20, True)
    assert call("copies")[1].startswith("no copy is known")


@pytest.mark.parametrize(
    "how",
    [("issue",), ("issue", "--inline"), ("split", "--most", "20KB")],
    ids=lambda how: " ".join(how[:2]),
)
def test_what_makes_a_copy_in_another_form_is_an_export(how, made, tmp_path, call):
    path, target = made(transfer="forbidden"), tmp_path / "out"
    status, _, err = call(how[0], path, *how[1:], "-o", target)
    assert (status, "it forbids any transfer" in err) == (20, True)
    assert not target.exists()
    assert call("copies")[1].startswith("no copy is known")


def test_an_issue_is_noted_as_what_went_out(made, tmp_path, call):
    path, target = made(delete_after_days=30), tmp_path / "issue.md"
    assert call("issue", path, "-o", target)[0] == 0
    assert call("issue", path)[0] == 0
    noted = json.loads(call("copies", "--json")[1])["here"]
    assert [one["where"] for one in noted] == [str(target), "standard output (issue)"]
    assert {one["kind"] for one in noted} == {"export"}


def test_what_join_writes_is_asked_for_and_noted(foreign, tmp_path, call):
    from reprobundle.format.parting import split_bundle
    from reprobundle.format.reader import open_bundle

    parts = tmp_path / "1.rpb.zip", tmp_path / "2.rpb.zip"
    with open_bundle(foreign) as opened:
        split_bundle(opened, ["inputs/data.csv"], first=parts[0], rest=parts[1])
    whole = tmp_path / "whole.rpb.zip"
    status, _, err = call("join", *reversed(parts), "-o", whole)
    assert (status, f"{REFUSED} joining it here" in err) == (20, True)
    assert not whole.exists()
    assert call("copies")[1].startswith("no copy is known")
    status, _, err = call("join", *parts, "-o", whole, "--override-policy", REASON)
    assert (status, whole.read_bytes()) == (0, foreign.read_bytes())
    (noted,) = json.loads(call("copies", "--json")[1])["here"]
    assert (noted["kind"], noted["where"]) == ("bundle", str(whole))


# What shows or derives numbers of the data, with what it is told to be.
LOOKS = {
    "accept": ("an acceptance", "standard output (accept)"),
    "accept --check": ("an acceptance", "standard output (accept --check)"),
    "diff": ("a comparison", "standard output (diff)"),
    "policy suggest": ("a look at its results", "standard output (policy suggest)"),
    "report -o -": ("a report", "standard output (report)"),
    "report --format markdown": ("a report", "standard output (report)"),
}


def looked(verb, path):
    name, *more = verb.split()
    if name == "policy":
        return ("policy", "suggest", path)
    if name == "diff":
        return ("diff", f"{path}:1", f"{path}:2")
    return (name, path, *more)


@pytest.mark.parametrize("verb", LOOKS)
def test_what_shows_numbers_asks_and_is_noted(verb, made, tmp_path, call):
    what, where = LOOKS[verb]
    path = made(processors=(PROCESSOR,))
    status, out, err = call(*looked(verb, path))
    assert (status, out) == (20, "")
    assert f"{REFUSED} {what} here: it names as processors {PROCESSOR}" in err
    assert call("copies")[1].startswith("no copy is known")
    with_reason = (*looked(verb, path), "--override-policy", REASON)
    assert REFUSED not in call(*with_reason)[2]
    if verb in {"accept --check", "policy suggest"}:
        return  # There is nothing to check or to derive from; see the other bundle.
    (noted,) = json.loads(call("copies", "--json")[1])["here"]
    assert (noted["kind"] in {"printed", "export"}, noted["where"]) == (True, where)
    assert noted["policy_overridden"].endswith(f"overridden: {REASON}")


def test_what_alters_copies_asks_and_notes_their_folder(foreign, call, monkeypatch):
    from reprobundle.verify.selftest import selftest as module

    few = partial(module.selftest, mutations=module.MUTATIONS[:2])
    monkeypatch.setattr(module, "selftest", few)
    status, out, err = call("selftest", foreign)
    assert (status, out) == (20, "")
    assert f"{REFUSED} a selftest, which copies it, here" in err
    assert call("copies")[1].startswith("no copy is known")
    status, _, err = call("selftest", foreign, "--override-policy", REASON)
    assert (status, REFUSED in err) == (0, False)
    (noted,) = json.loads(call("copies", "--json")[1])["here"]
    assert noted["kind"] == "members"
    assert "/reprobundle-selftest-" in noted["where"]
    assert (noted["there"], noted["removed"] != "") == (False, True)


def test_a_verdict_alone_asks_nothing(foreign, call):
    for verb in ("verify", "inspect", "check"):
        assert REFUSED not in call(verb, foreign)[2]
    assert REFUSED not in call("report", foreign, "--format", "junit")[2]
    assert call("copies")[1].startswith("no copy is known")


def test_what_is_no_bundle_is_called_so_and_not_asked_about(tmp_path, call):
    other = tmp_path / "x.rpb.zip"
    other.write_bytes(b"PK\x03\x04 and no more")
    for verb in ("accept", "selftest", "forecast"):
        status, _, err = call(verb, other)
        assert (status, "data rule" in err, "policy" in err) == (21, False, False)


def test_a_copy_is_called_noted_only_once_it_is(made, tmp_path, call):
    path = made(delete_after_days=30)
    (tmp_path / "there").mkdir()
    status, _, err = call("extract", path, "--into", tmp_path / "there")
    assert (status, " is noted in " in err) == (20, False)
    assert call("copies")[1].startswith("no copy is known")
    _, _, err = call("extract", path, "--into", tmp_path / "x")
    assert f"the copy in {tmp_path / 'x'} is noted in " in err


def test_a_bundle_that_was_moved_is_the_copy_that_had_to_be_gone(
    made, tmp_path, call, monkeypatch
):
    from reprobundle.run import data_rules

    path = made(delete_after_days=0)
    assert call("copies", path)[0] == 0
    (noted,) = json.loads(call("copies", "--json")[1])["here"]
    moved = path.rename(tmp_path / "moved.rpb.zip")
    monkeypatch.setattr(data_rules, "today", lambda: "9999-12-31")
    status, out, _ = call("copies", moved)
    assert status == 10
    assert f"bundle in {moved}, made " in out
    assert f"and OVERDUE: it had to be gone by {noted['delete_by']}" in out
    assert call("copies")[0] == 10


def test_a_copy_past_its_day_ends_with_status_10(made, tmp_path, call, monkeypatch):
    from reprobundle.run import data_rules

    path = made(delete_after_days=0)
    call("extract", path, "--into", tmp_path / "x")
    assert call("copies")[0] == 0
    monkeypatch.setattr(data_rules, "today", lambda: "9999-12-31")
    status, out, _ = call("copies")
    assert (status, "and OVERDUE: it had to be gone by" in out) == (10, True)
    assert json.loads(call("copies", "--json")[1])["here"][0]["overdue"] is True


def test_rules_that_cannot_be_read_let_nothing_out(tmp_path, call):
    bench = Bench(tmp_path)
    bench.left_out = ("policy.json",)
    bench.pack()
    # A bundle without any policy states nothing about data.
    assert call("cat", bench.path, "inputs/data.csv")[0] == 0
    bench.left_out = ()
    bench.policy = {"data": "free for all"}  # type: ignore[assignment]
    bench.pack()
    status, out, err = call("cat", bench.path, "inputs/data.csv")
    assert (status, out) == (20, "")
    assert "what may be done with its data cannot be read" in err


def test_inspect_shows_the_rules(foreign, call):
    words = " ".join(call("inspect", foreign)[1].split())
    assert f"data clinical; transfer allowed; processors {PROCESSOR};" in words


# --- replay


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """A packed bundle whose data may be processed elsewhere only."""
    folder = tmp_path_factory.mktemp("rules")
    project = make_project(folder / "project")
    rules = {
        "data_class": "clinical",
        "transfer": "encrypted",
        "processors": [PROCESSOR],
        "delete_after_days": 30,
        "recipients": ["age1q"],
    }
    policy = folder / "policy.json"
    policy.write_text(json.dumps({"data": rules}))
    target = folder / "x.rpb.zip"
    options = ("--policy", policy, "--passes", "measured", "--seed", "7", "-q")
    done = reprobundle(
        *("pack", "-o", target, *options, "--", "python", "train.py"),
        cwd=project,
        env={"XDG_STATE_HOME": str(folder / "state")},
    )
    assert done.status == 0, done.err
    return target, done


@pytest.fixture
def bundle(sealed, tmp_path):
    return shutil.copy(sealed[0], tmp_path / "x.rpb.zip")


def test_pack_says_how_to_encrypt_before_it_travels(sealed):
    words = " ".join(sealed[1].out.split())
    assert "data clinical; transfer encrypted; processors nobody@" in words
    assert "before it travels: age -r age1q -o x.rpb.zip.age x.rpb.zip" in words


def test_pack_says_that_the_last_day_has_passed(project, tmp_path):
    policy = tmp_path / "policy.json"
    rules = {"data_class": "clinical", "process_until": "2020-02-29"}
    policy.write_text(json.dumps({"data": rules}))
    options = ("--policy", policy, "--offline", "--passes", "measured", "-q")
    done = reprobundle(
        *("pack", "-o", tmp_path / "x.rpb.zip", *options, "--", "python", "train.py"),
        cwd=project,
    )
    assert done.status == 0, done.err
    assert "policy: its data could be processed until 2020-02-29, it is 2" in done.err


def test_the_bundle_that_pack_wrote_is_the_first_copy(sealed, call, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(sealed[0].parent / "state"))
    (noted,) = json.loads(call("copies", sealed[0], "--json")[1])["here"]
    assert (noted["kind"], noted["where"]) == ("bundle", str(sealed[0]))
    assert noted["there"] is True


def test_replay_is_refused_before_anything_runs(bundle):
    done = reprobundle("replay", bundle, "--yes", "-q")
    assert done.status == 20
    assert f"{REFUSED} a replay here" in done.err
    assert "will run" not in done.err


def test_a_forecast_asks_before_it_runs_and_notes_its_folder(bundle, call, monkeypatch):
    from reprobundle.port.forecast import forecast as module

    def stopped(subject, options):
        raise BadCallError("far enough")

    monkeypatch.setattr(module, "forecast", stopped)
    status, _, err = call("forecast", bundle, "--yes")
    assert (status, f"{REFUSED} a forecast here" in err) == (20, True)
    assert call("copies")[1].startswith("no copy is known")
    # There is no terminal to ask: what was not agreed to is no copy either.
    status, _, err = call("forecast", bundle, "--override-policy", REASON)
    assert (status, "there is no terminal to ask" in err) == (20, True), err
    assert call("copies")[1].startswith("no copy is known")
    reasoned = ("--yes", "--override-policy", REASON)
    assert "far enough" in call("forecast", bundle, *reasoned)[2]
    (noted,) = json.loads(call("copies", "--json")[1])["here"]
    assert (noted["kind"], noted["there"], noted["removed"] != "") == (
        ("run", False, True)
    )


def test_replay_with_a_reason_is_recorded_shown_and_every_copy_listed(
    bundle, tmp_path, call
):
    asked = ("--yes", "-q", "--override-policy", REASON)
    done = reprobundle("replay", bundle, *asked)
    assert done.status == 12, done.err
    assert f"overridden: {REASON}" in " ".join(done.err.split())
    assert "why           data-rule-overridden: it names as processors" in done.out
    allowed = reprobundle("verify", bundle, "--allow", "data-rule-overridden")
    assert allowed.status == 0
    with zipfile.ZipFile(bundle) as archive:
        (name,) = (
            one
            for one in archive.namelist()
            if one.endswith("record.json") and one.startswith("replays/")
        )
        remarks = json.loads(archive.read(name))["remarks"]
    (rule,) = [one for one in remarks if one["id"] == "data-rule-overridden"]
    assert rule["text"].endswith(f"overridden: {REASON}")
    copies = [one for one in remarks if one["id"] == "data-copy"]
    assert [one["text"].split()[0] for one in copies] == ["bundle", "run"]
    assert "there while this record is written, to be gone by" in copies[1]["text"]
    assert copies[0]["where"].endswith("x.rpb.zip")
    _, out, _ = call("copies", bundle)
    run_line = next(line for line in out.splitlines() if line.startswith("  run in"))
    assert "gone since" in run_line


def test_a_replay_that_handoff_started_was_asked_by_handoff(bundle, tmp_path):
    notes = tmp_path / "notes.json"
    notes.write_text('{"notes": []}')
    state = tmp_path / "far"
    env = {"REPROBUNDLE_HANDOFF": str(notes), "XDG_STATE_HOME": str(state)}
    done = reprobundle("replay", bundle, "--yes", "-q", env=env)
    assert done.status == 0, done.err
    assert not (state / "reprobundle/copies.jsonl").exists()
