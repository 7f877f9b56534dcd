import pytest

from inkwell.query import And, Not, Or, Phrase, QueryError, Tag, Term, parse


def test_or_binds_looser_than_an_unwritten_and():
    assert parse("a b OR c") == Or(And(Term("a"), Term("b")), Term("c"))


def test_parentheses_phrase_tag_and_not():
    wanted = And(Or(Tag("sea"), Phrase(("spring", "tide"))), Not(Term("draft")))
    assert parse('(#sea OR "spring tides") -draft') == wanted
    assert parse("(#sea OR spring-tides) -draft") == wanted


@pytest.mark.parametrize("text", ["", "(a", "a )", "OR a", "a -", "a %"])
def test_malformed_queries_are_refused(text):
    with pytest.raises(QueryError):
        parse(text)
