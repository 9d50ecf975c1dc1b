"""Addresses of fleets and the certificates that they need."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loadstone.engine.fleet import address, certificates
from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY, SchedulerAddress
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system import files
from loadstone.system.certificates import Authority

pytestmark = pytest.mark.pure

URL = "tls://10.0.0.1:8786"


def test_certificates_that_are_valid_are_accepted(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    assert address.read(URL, tmp_path) == SchedulerAddress(URL, tmp_path)


def test_an_expired_certificate_is_named_with_what_to_do(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    until = datetime.now(UTC) - timedelta(days=1)
    expired = Authority.create("a").issue("b", until=until).certificate
    (tmp_path / CERTIFICATE).write_text(expired)
    message = rf"{re.escape(str(tmp_path / CERTIFICATE))} expired on {until:%Y-%m-%d}; .*delete"
    with pytest.raises(InvalidInput, match=message):
        address.read(URL, tmp_path)


def test_a_file_that_is_not_a_certificate_is_named(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    (tmp_path / CERTIFICATE).write_text("nothing")
    with pytest.raises(InvalidInput, match=f"{CERTIFICATE} cannot be used: it is not"):
        address.read(URL, tmp_path)


def test_a_missing_file_beside_others_is_not_to_be_made_by_fleet_up(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    (tmp_path / CA).unlink()
    message = rf"{CA} is missing, and others are there; copy all of .* or delete {tmp_path}"
    with pytest.raises(InvalidInput, match=message):
        address.read(URL, tmp_path)


def test_certificates_that_could_not_all_be_written_leave_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, text: str, *_: int) -> None:
        if path.name == CERTIFICATE:
            raise EnvironmentUnusable("no space left")
        path.write_text(text)

    monkeypatch.setattr(files, "write", write)
    with pytest.raises(EnvironmentUnusable):
        certificates.make(tmp_path)
    assert not (tmp_path / KEY).exists()
