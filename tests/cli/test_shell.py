"""Commands for a shell that sets the variables of a target."""

import pytest

from loadstone.cli.shell import unset

pytestmark = pytest.mark.pure


def test_what_a_shell_has_of_another_cloud_is_unset(monkeypatch):
    for name in ("OS_CLOUD", "OS_PROJECT_ID", "OS_AUTH_URL", "OS_CLIENT_CONFIG_FILE"):
        monkeypatch.setenv(name, "of another")
    monkeypatch.setenv("OS_$(reboot)", "no name that a shell can unset")
    monkeypatch.setenv("LOADSTONE_OIDC_ISSUER", "a provider that is not concerned")
    assert unset(["OS_AUTH_URL", "OS_USERNAME"]) == "unset OS_CLOUD OS_PROJECT_ID"


def test_nothing_is_unset_in_a_shell_without_another_target(monkeypatch):
    monkeypatch.setenv("OS_AUTH_URL", "of the same variables")
    assert unset(["OS_AUTH_URL"]) == ""
