"""Signatures made by real keys, and told apart when they do not hold."""

from __future__ import annotations

import datetime
import html
import os
import re
import subprocess

import msgspec
import pytest

from reprobundle.errors import (
    BadCallError,
    DigestError,
    DocumentError,
    EnvironmentUnusableError,
)
from reprobundle.format.acceptance_record import Reports
from reprobundle.format.attach import (
    attach_acceptance,
    attach_replay_file,
    attach_signature,
    detach_replay,
    detach_signature,
)
from reprobundle.format.canonical import encode
from reprobundle.format.journal import journal_path
from reprobundle.format.policy import Claim
from reprobundle.format.reader import open_bundle, open_replay_file
from reprobundle.format.signature import parse_signature
from reprobundle.report.html import render_html
from reprobundle.report.markdown import render_markdown
from reprobundle.report.page import build_page
from reprobundle.report.terminal import render_report
from reprobundle.sign import examine
from reprobundle.sign.sign import default_key, sign
from reprobundle.sign.signers import stated_signers
from reprobundle.verify.assessment.making import Statement, make_acceptance
from tests.verify.builder import FAR, SCRIPT, Bench, Run, outputs

WHEN = datetime.datetime(2026, 12, 3, 1, 2, 3, tzinfo=datetime.timezone.utc)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path).pack()


def verified(bench, *lists, **options):
    return bench.verify(signers=stated_signers(lists, **options))


def outcome(report, name):
    return {one.outcome for one in report.findings if one.id == name}


def standings(report):
    return [one.standing for one in report.signatures]


def made_for(keys, person, namespace, document):
    """Return a signature in another namespace, made by ssh-keygen alone."""
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", keys[person], "-n", namespace]
    ended = subprocess.run(command, input=document, capture_output=True, check=True)
    return ended.stdout


def test_nothing_is_said_about_signatures_where_there_are_none(bench):
    report = bench.verify()
    assert outcome(report, "signature-holds") == {"not-applicable"}
    assert outcome(report, "author-signed") == {"not-checked"}
    assert report.assurance.level == "not-checked"


def test_signing_changes_neither_the_id_nor_what_was_there(bench, keys):
    bench.replay()
    before = bench.path.read_bytes()
    with open_bundle(bench.path) as bundle:
        end = bundle.entries[-1].end
    (signed,) = sign(bench.path, keys["alice"])
    assert bench.path.read_bytes()[:end] == before[:end]
    with open_bundle(bench.path) as bundle:
        assert bundle.id == bench.id == signed.subject.id
        assert bundle.signatures == (signed.name,)
    assert not journal_path(bench.path).exists()
    sign(bench.path, keys["bob"])
    with open_bundle(bench.path) as bundle:
        assert bundle.signatures[0] == signed.name
        assert len(bundle.signatures) == 2


def test_a_stranger_checks_a_signature_with_openssh_alone(
    bench, keys, listed, tmp_path
):
    (signed,) = sign(bench.path, keys["alice"])
    with open_bundle(bench.path) as bundle:
        (tmp_path / "s.sig").write_bytes(bundle.read_unsealed(signed.name))
        manifest = bundle.read("manifest.json")
    command = ["ssh-keygen", "-Y", "verify", "-f", listed(alice=""), "-I", "alice@lab"]
    command += ["-n", "reprobundle", "-s", tmp_path / "s.sig"]
    ended = subprocess.run(command, input=manifest, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    ended = subprocess.run(
        command, input=manifest + b" ", capture_output=True, check=False
    )
    assert ended.returncode != 0


def test_a_signature_that_holds_is_nobodys_without_a_list(bench, keys):
    sign(bench.path, keys["alice"])
    report = bench.verify()
    assert standings(report) == ["not-asked"]
    assert outcome(report, "signature-holds") == {"pass"}
    assert outcome(report, "signer-known") == {"not-checked"}
    assert report.assurance.level == "not-checked"


def test_author_replay_and_countersignature_make_a_chain(bench, keys, listed):
    signers = listed(alice="", bob="", carol="")
    sign(bench.path, keys["alice"])
    assert verified(bench, signers).assurance.level == "self-attested"
    replay = bench.replay()
    report = verified(bench, signers)
    assert report.assurance.level == "self-attested"
    assert "no replay is signed by another" in report.assurance.reason
    assert outcome(report, "lists-second-person") == {"not-checked"}
    sign(bench.path, keys["bob"], replays=("newest",))
    report = verified(bench, signers)
    assert report.assurance.level == "reproduced-by-second"
    assert report.assurance.reproduced_by == ("bob@lab",)
    assert report.assurance.countersigned == ()
    assert outcome(report, "lists-second-person") == {"pass"}
    assert (report.verdict, report.exit_status) == ("REPRODUCED, bit-identical", 0)
    sign(bench.path, keys["alice"], replays=(replay[:12],))
    report = verified(bench, signers)
    assert report.assurance.countersigned == (replay,)
    assert report.assurance.level == "reproduced-by-second"


def assured(bench, signers):
    return verified(bench, signers).assurance


def replayed_by(bench, keys, person, occasion, *runs):
    """Attach a replay of its own occasion, and sign it as somebody."""
    ids = [bench.replay(run, occasion=occasion * 16) for run in runs or (Run(),)]
    if person:
        sign(bench.path, keys[person], replays=("newest",))
    return ids


def test_each_who_reproduced_it_counts_and_not_only_the_newest(bench, keys, listed):
    signers = listed(alice="", bob="", carol="")
    sign(bench.path, keys["alice"])
    (first,) = replayed_by(bench, keys, "bob", "1")
    sign(bench.path, keys["alice"], replays=(first[:12],))
    replayed_by(bench, keys, "", "2")
    alone = assured(bench, signers)
    assert (alone.level, alone.reproduced_by) == ("reproduced-by-second", ("bob@lab",))
    assert alone.countersigned == (first,)
    replayed_by(bench, keys, "carol", "3")
    several = assured(bench, signers)
    assert several.level == "reproduced-by-several"
    assert several.reproduced_by == ("bob@lab", "carol@lab")


def test_one_run_that_two_people_sign_was_made_once(bench, keys, listed):
    signers = listed(alice="", bob="", carol="")
    sign(bench.path, keys["alice"])
    replayed_by(bench, keys, "bob", "1")
    sign(bench.path, keys["carol"], replays=("newest",))
    assert assured(bench, signers).level == "reproduced-by-second"
    replayed_by(bench, keys, "bob", "2")
    assert assured(bench, signers).level == "reproduced-by-several"


def test_a_newer_replay_that_says_no_takes_the_second_person_away(bench, keys, listed):
    signers = listed(alice="", bob="")
    sign(bench.path, keys["alice"])
    replayed_by(bench, keys, "bob", "1")
    replayed_by(bench, keys, "", "2", Run(outputs(logits=FAR)))
    report = verified(bench, signers)
    assert report.verdict == "NOT REPRODUCED"
    assert report.assurance.level == "self-attested"
    assert report.assurance.reason == "the replay that decides did not reproduce it"


def test_whoever_signs_one_claim_alone_did_not_reproduce_them_all(
    tmp_path, keys, listed
):
    bench = Bench(tmp_path)
    command = ("python", "train.py")
    claims = (Claim(name="main"), Claim(name="table 2", command=command))
    bench.policy = msgspec.structs.replace(bench.policy, claims=claims)
    bench.claims = {"table 2": Run()}
    bench.pack()
    signers = listed(alice="", bob="")
    sign(bench.path, keys["alice"])
    bench.replay(claim="table 2", runs=3, occasion="1" * 16)
    replayed_by(bench, keys, "bob", "2")
    report = verified(bench, signers)
    assert report.exit_status == 0
    assert report.assurance.level == "self-attested"
    assert report.assurance.reason == "nobody else signed a reproduction of table 2"


def test_the_newest_replay_is_all_that_one_occasion_recorded(bench, keys, listed):
    sign(bench.path, keys["alice"])
    bench.replay(occasion="1" * 16)
    both = [bench.replay(occasion="2" * 16) for _ in range(2)]
    signed = sign(bench.path, keys["bob"], replays=("newest",))
    assert [one.subject.id for one in signed] == both
    more = bench.replay(occasion="2" * 16)
    signed = sign(bench.path, keys["bob"], replays=("newest",))
    assert [one.subject.id for one in signed] == [more]


def test_the_author_is_no_second_person_under_another_key_or_name(
    bench, keys, listed, tmp_path
):
    sign(bench.path, keys["alice"])
    bench.replay()
    sign(bench.path, keys["bob"], replays=("newest",))
    two_keys = listed(alice="")
    bobs = " ".join(keys["bob"].with_suffix(".pub").read_text().split()[:2])
    two_keys.write_text(two_keys.read_text() + f"alice@lab {bobs}\n")
    assert verified(bench, two_keys).assurance.level == "self-attested"


def test_a_replay_that_did_not_reproduce_attests_nothing(bench, keys, listed):
    signers = listed(alice="", bob="")
    sign(bench.path, keys["alice"])
    bench.replay(Run(outputs(logits=FAR)))
    sign(bench.path, keys["bob"], replays=("newest",))
    report = verified(bench, signers)
    assert report.verdict == "NOT REPRODUCED"
    assert report.assurance.level == "self-attested"
    assert "did not reproduce" in report.assurance.reason or (
        "no replay reproduced" in report.assurance.reason
    )


@pytest.mark.parametrize(
    ("options", "standing", "reason"),
    [
        ('valid-before="20200101"', "expired", "its time was over"),
        ('valid-after="20900101"', "expired", "its time has not come"),
        ('namespaces="git"', "not-permitted", "not permit"),
    ],
)
def test_a_listed_key_that_may_not_sign_is_told(
    bench, keys, listed, options, standing, reason
):
    sign(bench.path, keys["alice"])
    bench.replay()
    report = verified(bench, listed(alice=options))
    assert standings(report) == [standing]
    assert reason in report.signatures[0].reason
    assert outcome(report, "signer-known") == {"fail"}
    assert outcome(report, "author-signed") == {"fail"}
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)


def test_a_key_that_is_over_now_was_good_then(bench, keys, listed):
    sign(bench.path, keys["alice"])
    signers = listed(alice='valid-before="20250101"')
    assert standings(verified(bench, signers)) == ["expired"]
    assert standings(verified(bench, signers, at="20240601")) == ["known"]


def test_an_unknown_key_and_a_withdrawn_one_are_told_apart(
    bench, keys, listed, tmp_path
):
    sign(bench.path, keys["alice"])
    report = verified(bench, listed(bob=""))
    assert standings(report) == ["unknown"]
    assert report.assurance.level == "unsigned"
    assert report.exit_status == 11
    revoked = tmp_path / "revoked"
    revoked.write_text(keys["alice"].with_suffix(".pub").read_text())
    report = verified(bench, listed(alice=""), revoked=revoked)
    assert standings(report) == ["revoked"]
    assert report.exit_status == 11


def test_a_list_asked_for_and_no_signature_is_not_success(bench, listed):
    bench.replay()
    assert bench.verify().exit_status == 0
    report = verified(bench, listed(alice=""))
    assert report.assurance.level == "unsigned"
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    assert (
        bench.verify(
            integrity_only=True, signers=stated_signers([listed(alice="")])
        ).exit_status
        == 11
    )


def test_a_signature_for_another_purpose_or_document_is_altered(bench, keys, listed):
    with open_bundle(bench.path) as bundle:
        manifest = bundle.read("manifest.json")
    other = made_for(keys, "alice", "file", manifest)
    name = attach_signature(bench.path, bench.id, other)
    report = verified(bench, listed(alice=""))
    assert standings(report) == ["other-namespace"]
    assert "'file'" in report.signatures[0].reason
    assert report.verdict == "TAMPERED"
    detach_signature(bench.path, name)
    changed = made_for(keys, "alice", "reprobundle", manifest + b"\n")
    name = attach_signature(bench.path, bench.id, changed)
    report = verified(bench, listed(alice=""))
    assert standings(report) == ["changed"]
    assert outcome(report, "signature-holds") == {"fail"}
    assert (report.verdict, report.exit_status) == ("TAMPERED", 21)
    detach_signature(bench.path, name)
    attach_signature(bench.path, bench.id, b"-----BEGIN SSH SIGNATURE-----\n")
    report = bench.verify()
    assert standings(report) == ["malformed"]
    assert report.exit_status == 21


def test_a_signature_moved_to_a_replay_does_not_hold(bench, keys, listed):
    (signed,) = sign(bench.path, keys["alice"])
    with open_bundle(bench.path) as bundle:
        data = bundle.read_unsealed(signed.name)
    replay = bench.replay()
    attach_signature(bench.path, replay, data)
    report = verified(bench, listed(alice=""))
    assert standings(report) == ["known", "changed"]
    assert report.exit_status == 21


def test_a_signature_without_what_it_signs_is_not_checked(bench, keys):
    data = made_for(keys, "alice", "reprobundle", b"something")
    attach_signature(bench.path, "0" * 64, data)
    report = bench.verify()
    assert standings(report) == ["without-subject"]
    assert outcome(report, "signature-holds") == {"not-checked"}


def test_a_signed_replay_travels_alone_and_brings_its_signature(
    bench, keys, listed, tmp_path
):
    signers = listed(alice="", bob="")
    sign(bench.path, keys["alice"])
    alone = bench.replay_alone()
    (signed,) = sign(alone, keys["bob"])
    with open_replay_file(alone) as replays:
        assert replays.signatures == (signed.name,)
        (replay,) = replays.replay_ids
    report = bench.verify(replay_file=alone, signers=stated_signers([signers]))
    assert report.assurance.level == "reproduced-by-second"
    assert attach_replay_file(bench.path, alone) == [replay]
    assert verified(bench, signers).assurance.level == "reproduced-by-second"
    sign(alone, keys["carol"])
    assert attach_replay_file(bench.path, alone) == []
    assert len(verified(bench, signers).signatures) == 3
    detach_replay(bench.path, replay)
    assert [one.kind for one in verified(bench, signers).signatures] == ["bundle"]


def test_detaching_a_replay_gives_the_signed_bundle_back(bench, keys):
    sign(bench.path, keys["alice"])
    before = bench.path.read_bytes()
    replay = bench.replay()
    sign(bench.path, keys["bob"], replays=(replay,))
    detach_replay(bench.path, replay)
    assert bench.path.read_bytes() == before


def test_nobody_signs_twice_or_what_is_damaged(bench, keys):
    sign(bench.path, keys["alice"])
    with pytest.raises(BadCallError, match=r"signed bundle .* already"):
        sign(bench.path, keys["alice"])
    with pytest.raises(BadCallError, match="0 replays match"):
        sign(bench.path, keys["alice"], replays=("newest",))
    data = bytearray(bench.path.read_bytes())
    place = data.index(SCRIPT[:8])
    data[place] ^= 1
    bench.path.write_bytes(data)
    with pytest.raises(DigestError):
        sign(bench.path, keys["bob"])


def test_a_key_that_cannot_sign_leaves_the_bundle_as_it_was(bench, tmp_path, keys):
    before = bench.path.read_bytes()
    with pytest.raises(BadCallError, match="no key at"):
        sign(bench.path, tmp_path / "none")
    bad = tmp_path / "bad"
    bad.write_text("no key\n")
    bad.chmod(0o600)
    with pytest.raises(EnvironmentUnusableError, match="could not sign"):
        sign(bench.path, bad)
    assert bench.path.read_bytes() == before


def test_a_list_of_public_keys_names_its_owner(bench, keys, tmp_path):
    sign(bench.path, keys["alice"])
    published = tmp_path / "octocat.keys"
    keys_of = [keys[one].with_suffix(".pub").read_text().split()[:2] for one in keys]
    published.write_text("".join(" ".join(one) + "\n" for one in keys_of))
    report = verified(bench, published)
    assert report.assurance.authors == ("octocat",)


@pytest.mark.parametrize("content", ["", "# nothing\n", "alice@lab\n", "\0\xff\n"])
def test_a_list_that_names_no_key_is_refused(tmp_path, content):
    path = tmp_path / "signers"
    path.write_text(content, "latin-1")
    with pytest.raises(BadCallError, match=r"names no signer|no key in the line"):
        stated_signers([path])


def test_a_time_that_is_none_is_refused(listed):
    with pytest.raises(BadCallError, match="is no time"):
        stated_signers([listed(alice="")], at="yesterday")


def test_without_ssh_keygen_nothing_reads_as_checked(bench, keys, listed, monkeypatch):
    signers = stated_signers([listed(alice="")])
    sign(bench.path, keys["alice"])
    monkeypatch.setenv("PATH", "/nowhere")
    report = bench.verify()
    assert standings(report) == ["not-tested"]
    assert outcome(report, "signature-holds") == {"not-checked"}
    with pytest.raises(EnvironmentUnusableError, match="ssh-keygen"):
        bench.verify(signers=signers)
    with pytest.raises(EnvironmentUnusableError, match="ssh-keygen"):
        sign(bench.path, keys["bob"])


def test_the_usual_key_is_found(tmp_path, monkeypatch, keys):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadCallError, match="no SSH key"):
        default_key()
    (tmp_path / ".ssh").mkdir()
    os.link(keys["alice"], tmp_path / ".ssh/id_ed25519")
    assert default_key().name == "id_ed25519"


CHANGES = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:80],
    "other magic": lambda data: data.replace(b"U1NIU0lH", b"AAAAAAAA"),
    "other armour": lambda data: data.replace(b"SSH SIG", b"PGP SIG"),
    "no base64": lambda data: data[:60] + b"!!!!" + data[64:],
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_signature_is_refused(keys, change):
    good = made_for(keys, "alice", "reprobundle", b"x")
    assert parse_signature(good, where="s").key_type == "ssh-ed25519"
    with pytest.raises(DocumentError, match="no SSH signature"):
        parse_signature(CHANGES[change](good), where="s")


def add(path, names, key):
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    path.write_text(path.read_text() + f"{names} {public}\n")


def test_a_line_of_several_names_knows_each_of_them(bench, keys, tmp_path):
    sign(bench.path, keys["alice"])
    signers = tmp_path / "signers"
    signers.touch()
    add(signers, "alice@lab,alice@home", keys["alice"])
    report = verified(bench, signers)
    assert standings(report) == ["known"]
    assert report.signatures[0].signer == "alice@lab, alice@home"


@pytest.mark.parametrize("lines", ["one line", "two lines"])
def test_whoever_shares_one_of_several_names_with_the_author_is_the_author(
    bench, keys, tmp_path, lines
):
    sign(bench.path, keys["alice"])
    bench.replay()
    sign(bench.path, keys["bob"], replays=("newest",))
    signers = tmp_path / "signers"
    signers.touch()
    if lines == "one line":
        add(signers, "alice@lab,alice@home", keys["alice"])
    else:
        add(signers, "alice@lab", keys["alice"])
        add(signers, "alice@home", keys["alice"])
    add(signers, "alice@home", keys["bob"])
    report = verified(bench, signers)
    assert standings(report) == ["known", "known"]
    assert report.assurance.level == "self-attested"


def test_more_signatures_than_are_looked_at_are_not_checked(
    bench, keys, listed, monkeypatch
):
    monkeypatch.setattr(examine, "MOST_SIGNATURES", 1)
    sign(bench.path, keys["alice"])
    sign(bench.path, keys["bob"])
    report = verified(bench, listed(alice="", bob=""))
    assert standings(report) == ["known", "not-tested"]
    assert outcome(report, "signature-holds") == {"pass", "not-checked"}
    assert "only the first 1" in report.signatures[1].reason


def test_a_signature_over_a_damaged_record_is_no_reason_to_stop(bench, keys):
    replay = bench.replay()
    sign(bench.path, keys["bob"], replays=(replay,))
    with open_bundle(bench.path) as bundle:
        name = f"replays/{replay}/record.json"
        entry = next(one for one in bundle.entries if one.name == name)
    data = bytearray(bench.path.read_bytes())
    data[entry.data_offset + 5] ^= 1
    bench.path.write_bytes(data)
    report = bench.verify()
    assert standings(report) == ["without-subject"]
    assert outcome(report, "replay-name") == {"fail"}
    assert report.exit_status == 21


def test_an_acceptance_record_is_shown_with_who_signed_it(bench, keys, listed):
    bench.replay()
    said = Statement("A. Tester", "lab 1", "", "", "", WHEN)
    record = make_acceptance(bench.verify(acceptance=True), said, Reports())
    attach_acceptance(bench.path, encode(record))
    (one,) = bench.verify().acceptances
    assert one.signed_by == ()
    sign(bench.path, keys["bob"], acceptances=("newest",))
    (one,) = bench.verify().acceptances
    (fingerprint,) = {one.fingerprint for one in bench.verify().signatures}
    reason = "the signature holds, but nobody said whose key it is"
    assert one.signed_by == (f"signed by {fingerprint} ({reason})",)
    report = verified(bench, listed(bob="", alice=""))
    (one,) = report.acceptances
    assert one.signed_by == (f"signed by bob@lab ({fingerprint})",)
    page = build_page(bench.path, report)
    for text in (render_report(report), render_markdown(page), render_html(page)):
        words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
        assert "signed by bob@lab (SHA256:" in re.sub(r"[`\\\u2060]", "", words)
