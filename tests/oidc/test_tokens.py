import json
import math
from time import time

import pytest

from loadstone.oidc.http import HttpAnswer
from loadstone.oidc.provider import Tokens


@pytest.mark.parametrize(
    ("said", "life_s"), [(3600, 3600.0), ("3600", 3600.0), (None, math.inf), ("soon", math.inf)]
)
def test_a_token_lives_as_long_as_the_provider_says(said: object, life_s: float) -> None:
    """RFC 6749, 5.1: expires_in is recommended, and may be absent."""
    given = {"access_token": "x"} | ({} if said is None else {"expires_in": said})
    tokens = Tokens.of(HttpAnswer(200, json.dumps(given)), "a grant")
    assert tokens.expires_at == pytest.approx(time() + life_s, abs=10)
