"""The list of every place of a copy of data."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.policy import DataRules
from reprobundle.run import copies
from reprobundle.run.copies import DataUse, log_path, read_log

RULES = DataRules(data_class="clinical", delete_after_days=30)


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_copy_is_noted_with_place_time_and_last_day(tmp_path):
    folder = tmp_path / "x"
    DataUse("b1", RULES, "too late; overridden: agreed").copied("members", folder)
    (one,) = read_log("b1").copies
    place = str(folder.parent.resolve() / "x")
    assert (one.kind, one.where, one.data_class) == ("members", place, "clinical")
    assert one.made[:10] < one.delete_by
    assert one.overridden == "too late; overridden: agreed"
    assert read_log("b2").copies == ()
    assert read_log().copies == (one,)
    assert log_path().stat().st_mode & 0o777 == 0o600


def test_a_copy_that_is_there_is_never_noted_as_gone(tmp_path):
    use = DataUse("b1", RULES, "")
    folder = tmp_path / "x"
    folder.mkdir()
    use.copied("run", folder)
    use.removed(folder)
    (one,) = read_log("b1").copies
    assert (one.is_there, one.removed) == (True, "")
    folder.rmdir()
    use.removed(folder)
    (one,) = read_log("b1").copies
    assert not one.is_there
    assert one.removed.endswith("Z")
    assert len(log_path().read_bytes().splitlines()) == 2


def test_a_copy_is_overdue_only_while_it_is_there(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    DataUse("b1", RULES, "").copied("members", folder)
    (one,) = read_log("b1").copies
    assert one.is_overdue("9999-12-31")
    assert not one.is_overdue(one.delete_by)
    folder.rmdir()
    assert not one.is_overdue("9999-12-31")
    # A link that leads nowhere is still something to remove.
    folder.symlink_to(tmp_path / "nowhere")
    assert one.is_overdue("9999-12-31")


def test_the_bundle_itself_is_noted_once_and_what_has_no_path_as_words(tmp_path):
    use = DataUse("b1", RULES, "")
    (tmp_path / "p").mkdir()
    use.copied("bundle", tmp_path / "b.zip")
    use.copied("bundle", tmp_path / "p" / ".." / "b.zip")
    use.copied("printed", "standard output (out.csv)")
    bundle, printed = read_log("b1").copies
    assert bundle.kind == "bundle"
    assert not printed.is_traced
    assert not printed.is_there


def test_a_bundle_at_another_place_keeps_the_day_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "_day_in", lambda days: "2025-12-31")
    # What was fetched into a nameless file is gone and was never at a place.
    DataUse("b1", RULES, "").copied("bundle", "a nameless temporary file")
    monkeypatch.setattr(copies, "_day_in", lambda days: "2026-01-31")
    DataUse("b1", RULES, "").copied("bundle", tmp_path / "b.zip")
    monkeypatch.setattr(copies, "_day_in", lambda days: "2026-06-30")
    DataUse("b1", RULES, "").copied("bundle", tmp_path / "moved.zip")
    DataUse("b1", RULES, "").copied("members", tmp_path / "members")
    DataUse("b2", RULES, "").copied("bundle", tmp_path / "other.zip")
    days = {one.where: one.delete_by for one in read_log().copies}
    assert days == {
        "a nameless temporary file": "2025-12-31",
        str(tmp_path / "b.zip"): "2026-01-31",
        str(tmp_path / "moved.zip"): "2026-01-31",
        str(tmp_path / "members"): "2026-06-30",
        str(tmp_path / "other.zip"): "2026-06-30",
    }


def test_without_rules_nothing_is_noted(tmp_path):
    use = DataUse("b1", None, "")
    use.copied("members", tmp_path)
    use.removed(tmp_path)
    assert not use.is_noted
    assert not log_path().exists()


def test_lines_that_cannot_be_read_are_counted(tmp_path):
    DataUse("b1", RULES, "").copied("members", tmp_path)
    with log_path().open("ab") as log:
        log.write(b"{\n" + msgspec.json.encode({"bundle": "b1"}) + b"\n")
    assert len(read_log("b1").copies) == 1
    assert read_log("b1").unread == 2


def test_a_copy_that_cannot_be_noted_is_not_made(tmp_path, monkeypatch):
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(EnvironmentUnusableError, match="cannot be noted"):
        DataUse("b1", RULES, "").copied("members", tmp_path)
