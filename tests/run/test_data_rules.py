"""Whether data may be processed here, by the policy sealed with them."""

from __future__ import annotations

import getpass
import socket

import pytest

from reprobundle.errors import DataRuleError
from reprobundle.format.policy import DataRules, Policy
from reprobundle.run import data_rules
from reprobundle.run.data_rules import (
    against_here,
    encryption_hint,
    require_allowed_here,
    rules_of,
    told,
)


def rules(**stated):
    return DataRules(data_class="clinical", **stated)


@pytest.fixture(autouse=True)
def on_the_mac(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(socket, "gethostname", lambda: "mac")
    monkeypatch.setattr(socket, "getfqdn", lambda: "mac.lab.example")
    monkeypatch.setattr(data_rules, "today", lambda: "2026-12-03")


@pytest.mark.parametrize(
    ("stated", "travels", "words"),
    [
        ({"processors": ("*@other", "bob@*")}, False, "processors *@other, bob@*, and"),
        ({"process_until": "2026-12-02"}, False, "until 2026-12-02, it is 2026-12-03"),
        ({"transfer": "forbidden"}, True, "it forbids any transfer"),
        ({"transfer": "encrypted"}, True, "it wants the bundle encrypted before"),
    ],
)
def test_each_rule_can_be_broken(stated, travels, words):
    (found,) = against_here(rules(**stated), travels=travels)
    assert words in found


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"processors": ("ada@mac",)},
        {"processors": ("mac",)},
        {"processors": ("*@*.lab.example",)},
        {"process_until": "2026-12-03"},
        {"transfer": "forbidden"},
        {"transfer": "encrypted"},
    ],
)
def test_what_keeps_to_it_is_let_through(stated):
    assert against_here(rules(**stated)) == []
    assert require_allowed_here(rules(**stated), "", what="a replay") == ""


def test_only_a_reason_overrides_and_it_is_given_back():
    late = rules(process_until="2020-01-01", reason="approval 12/26")
    with pytest.raises(DataRuleError) as caught:
        require_allowed_here(late, "  ", what="a replay")
    told_line = str(caught.value)
    assert "is against a replay here: its data could be processed until" in told_line
    assert "(approval 12/26); ask its author; --override-policy REASON" in told_line
    overridden = require_allowed_here(late, " agreed ", what="a replay")
    assert overridden.endswith("it is 2026-12-03; overridden: agreed")


def test_without_rules_nothing_is_against_it_and_nothing_overridden():
    assert rules_of(Policy()) is None
    assert require_allowed_here(None, "why not", what="a replay") == ""
    assert require_allowed_here(rules(), "why not", what="a replay") == ""


@pytest.mark.parametrize(
    ("stated", "command"),
    [
        ({}, "age -r RECIPIENT -o 'a b.zip'.age 'a b.zip'"),
        (
            {"recipients": ("age1q", "age1z")},
            "age -r age1q -r age1z -o 'a b.zip'.age 'a b.zip'",
        ),
        (
            {"recipients": ("ada@lab",)},
            "gpg --recipient ada@lab --output 'a b.zip'.gpg --encrypt 'a b.zip'",
        ),
        ({"transfer": "forbidden"}, ""),
    ],
)
def test_how_to_encrypt_is_a_command_that_can_be_pasted(stated, command):
    assert encryption_hint(rules(**stated), "a b.zip") == command


def test_what_is_not_sensitive_gets_a_hint_only_where_it_is_asked_for():
    public = DataRules(data_class="public")
    assert encryption_hint(public, "x") == ""
    assert encryption_hint(None, "x") == ""
    asked = DataRules(data_class="public", transfer="encrypted")
    assert encryption_hint(asked, "x").startswith("age ")


def test_rules_are_told_in_one_line():
    assert told(
        rules(
            processors=("*@mac",),
            process_until="2027-03-31",
            delete_after_days=30,
            recipients=("age1q",),
            reason="approval 12/26",
        )
    ) == (
        "clinical; transfer allowed; processors *@mac; may be processed until "
        "2027-03-31; copies deleted after 30 days; encrypted to age1q; approval 12/26"
    )
