import pytest

from reprobundle.errors import BadCallError
from reprobundle.pack.stated import parse_facts


def test_a_stated_fact_is_marked_as_stated():
    facts = parse_facts(["batch_size=32", "data.revision=a=b"])
    assert set(facts) == {"stated.batch_size", "stated.data.revision"}
    fact = facts["stated.data.revision"]
    assert (fact.value, fact.unknown) == ("a=b", "")
    assert "stated by the user" in fact.source


@pytest.mark.parametrize(
    "text", ["", "batch", "=3", "Batch=3", "a b=3", "a..b=3", "x" * 65 + "=1", ".a=1"]
)
def test_another_form_is_refused_with_an_example(text):
    with pytest.raises(BadCallError, match="KEY=VALUE") as caught:
        parse_facts([text])
    assert "--fact batch_size=32" in str(caught.value)


@pytest.mark.parametrize("value", ["", "x" * 1001, "a\nb", "\x1b[31m"])
def test_an_unprintable_or_endless_value_is_refused(value):
    with pytest.raises(BadCallError, match="1 to 1000 printable"):
        parse_facts([f"key={value}"])


def test_two_values_for_one_key_are_refused():
    with pytest.raises(BadCallError, match="stated twice, once as '1' and once as '2'"):
        parse_facts(["a=1", "a=2"])
