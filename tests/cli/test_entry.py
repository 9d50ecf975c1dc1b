"""How the process begins."""

import subprocess
import sys
from importlib.metadata import entry_points


def test_ctrl_c_while_python_still_imports_ends_in_one_line():
    (entry,) = entry_points(group="console_scripts", name="loadstone")
    code = (
        "import sys\n"
        "class CtrlC:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, CtrlC())\n"
        f"from {entry.module} import {entry.attr}\n"
        f"{entry.attr}()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert ended.stderr == "loadstone: interrupted\n"
    assert ended.returncode == 130
