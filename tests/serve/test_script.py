"""Scripts of faults of the reference service."""

import pytest

from loadstone.errors import InvalidInput
from loadstone.serve.service import Scripted, ScriptedFault, read_script


def test_a_script_names_faults_and_their_times(tmp_path):
    file = tmp_path / "script.yaml"
    file.write_text("- {at: 10, dark: 1}\n- {at: 20, slow: 3, for: 4}\n")
    assert read_script(file) == (
        ScriptedFault(Scripted.DARK, 10, 1),
        ScriptedFault(Scripted.SLOW, 20, 4, 3),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {at: true, dark: 1}", "fault 1: at, dark must be numbers"),
        ("- {at: .nan, dark: 1}", "fault 1: at, dark must be numbers"),
        ("- {at: 1, dark: .inf}", "fault 1: at, dark must be numbers"),
        (f"- {{at: 1{'0' * 400}, dark: 1}}", "fault 1: at, dark must be numbers"),
        ("- {at: 9, dark: 1}\n- {at: 10}", r"yaml:2: fault 2: must have one of dark, slow, refuse"),
        ("- {at: 10, dark: 1, for: 2}", "at, dark, and nothing else"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path, text, words):
    file = tmp_path / "script.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_script(file)
