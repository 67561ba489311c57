"""What a sealed policy has against a hand-off."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.policy import DataRules, Policy
from reprobundle.handoff.data_rules import hint, objections, require_allowed
from reprobundle.handoff.errors import TransferForbiddenError
from reprobundle.handoff.ssh import Destination
from reprobundle.run.data_rules import rules_of

MAC = Destination("me@mac.lab.example")


def against(rules, *, encrypted=False, today="2026-12-03"):
    return list(objections(rules, MAC, today=today, encrypted=encrypted))


def test_nothing_stated_is_nothing_against_it():
    assert rules_of(Policy()) is None
    assert b"data" not in msgspec.json.encode(Policy())


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"transfer": "forbidden"}, "it forbids any transfer"),
        ({"transfer": "encrypted"}, "it wants the bundle encrypted before transfer"),
        ({"processors": ("*@other",)}, "it names as processors *@other, and not"),
        ({"process_until": "2026-12-02"}, "could be processed until 2026-12-02"),
    ],
)
def test_each_rule_can_be_broken(stated, words):
    (found,) = against(DataRules(data_class="clinical", **stated))
    assert words in found


@pytest.mark.parametrize(
    "stated",
    [
        {"processors": ("mac.lab.example",)},
        {"processors": ("me@*",)},
        {"process_until": "2026-12-03"},
    ],
)
def test_what_keeps_to_it_is_let_through(stated):
    assert against(DataRules(data_class="clinical", **stated)) == []


def test_encryption_meets_the_wish_for_it():
    assert (
        against(DataRules(data_class="clinical", transfer="encrypted"), encrypted=True)
        == []
    )


def test_only_a_reason_overrides_and_it_is_given_back():
    rules = DataRules(data_class="clinical", transfer="forbidden")

    def allowed(override):
        return require_allowed(
            rules, MAC, today="2026-12-03", encrypted=False, override=override
        )

    with pytest.raises(TransferForbiddenError, match="--override-policy"):
        allowed("  ")
    assert allowed("agreed") == ["it forbids any transfer"]


def test_sensitive_classes_get_a_hint_until_they_are_encrypted():
    rules = DataRules(data_class="personal")
    assert "--encrypt-to" in hint(rules, encrypted=False)
    assert hint(rules, encrypted=True) == ""
    assert hint(DataRules(data_class="public"), encrypted=False) == ""


def test_a_day_that_no_calendar_has_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(
            b'{"data_class":"public","process_until":"2026-02-31"}', type=DataRules
        )
