"""Settings that differ between two results."""

from loadstone.report.settings import SettingDifference, differences


def test_only_what_differs_is_named() -> None:
    old = [("release", "keystone 25.0.0"), ("workers", "2"), ("url", "http://127.0.0.1:1/v3")]
    new = [("release", "keystone 30.0.0"), ("workers", "2"), ("url", "http://127.0.0.1:2/v3")]
    assert differences([old, new]) == (
        SettingDifference("release", ("keystone 25.0.0", "keystone 30.0.0")),
    )


def test_what_one_side_does_not_know_differs() -> None:
    assert differences([[("cache", "local")], []]) == (SettingDifference("cache", ("local", None)),)
