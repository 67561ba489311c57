"""The names of signatures, and their limit."""

from __future__ import annotations

import pytest

from reprobundle.errors import DocumentError, LimitError
from reprobundle.format.attach import attach_signature
from reprobundle.format.signature import (
    LIMIT_BYTES,
    parse_signature,
    signature_name,
    signed_subject,
    subject_of,
)

SUBJECT = "ab" * 32


def test_a_name_states_what_is_signed_and_by_which_bytes():
    name = signature_name(SUBJECT, b"x")
    assert signed_subject(name, b"x") == subject_of(name) == SUBJECT
    assert subject_of("signatures/alice.sig") == ""


@pytest.mark.parametrize("name", ["signatures/alice.sig", "other bytes"])
def test_a_name_that_states_something_else_is_refused(name):
    name = signature_name(SUBJECT, b"y") if name == "other bytes" else name
    with pytest.raises(DocumentError) as caught:
        signed_subject(name, b"x")
    assert caught.value.rule == "R-4.33"
    with pytest.raises(DocumentError) as caught:
        parse_signature(b"x", where=name)
    assert caught.value.rule == "R-4.33"


def test_a_signature_larger_than_one_can_be_is_not_attached(bundle_path):
    before = bundle_path.read_bytes()
    with pytest.raises(LimitError) as caught:
        attach_signature(bundle_path, SUBJECT, bytes(LIMIT_BYTES + 1))
    assert caught.value.rule == "R-4.33"
    assert bundle_path.read_bytes() == before
