"""The reference service as a cell of a study."""

import pytest

from loadstone.keystone.contexts.existing import own_user
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.target.connect import reference_target


def test_it_issues_tokens_and_has_gone_afterwards():
    with reference_target(print) as target:
        (token,) = issue_tokens(target.access, (own_user(target.access),))
        assert token.value
        assert target.failure() is None
    assert target.failure() == "loadstone serve died"


def test_it_ends_when_its_measurement_fails():
    with pytest.raises(KeyboardInterrupt), reference_target(print) as target:
        raise KeyboardInterrupt
    assert target.failure() is not None
