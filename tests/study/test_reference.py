"""The reference service as a cell of a study."""

import pytest

from loadstone.cli.reference import of_reference
from loadstone.keystone.contexts.existing import own_user
from loadstone.keystone.contexts.tokens import issue_tokens


def test_it_issues_tokens_and_has_gone_afterwards():
    with of_reference() as subject:
        (token,) = issue_tokens(subject.access, (own_user(subject.access),))
        assert token.value
        assert subject.failure() is None
    assert subject.failure() == "loadstone serve died"


def test_it_ends_when_its_measurement_fails():
    with pytest.raises(KeyboardInterrupt), of_reference() as subject:
        raise KeyboardInterrupt
    assert subject.failure() is not None
