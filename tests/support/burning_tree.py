"""A process that starts children which use a known CPU time, as its standard input says.

    spend SECONDS   a child uses so much and ends; it is waited for
    nest SECONDS    the same, and so does a child of the child, before it
    hold SECONDS    a child uses so much and stays; answers its pid
    kill PID        ends a child that stayed, and waits for it

Each is answered with one line: what the kernel counted, in seconds (getrusage), and a pid or 0.
With the argument `unwaited` children are waited for by nobody (SIGCHLD is ignored).
"""

import os
import resource
import signal
import sys
import time
from contextlib import suppress


def used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def child(seconds: float, *, depth: int = 0, stays: bool = False) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    inner_s = 0.0
    if depth:
        reading, writing = os.pipe()
        grandchild = os.fork()
        if not grandchild:
            burn(seconds)
            os.write(writing, str(used_s()).encode())
            os._exit(0)
        inner_s = float(os.read(reading, 99))
        os.waitpid(grandchild, 0)
    burn(seconds)
    os.write(1, f"{used_s() + inner_s} {os.getpid()}\n".encode())
    while stays:
        signal.pause()
    os._exit(0)


def wait(pid: int) -> None:
    with suppress(ChildProcessError):  # waited for by nobody: this returns when it has ended
        os.waitpid(pid, 0)


def main() -> None:
    if "unwaited" in sys.argv:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        word, given = line.split()
        match word:
            case "spend":
                wait(child(float(given)))
            case "nest":
                wait(child(float(given), depth=1))
            case "hold":
                child(float(given), stays=True)
                continue
            case "kill":
                os.kill(int(given), signal.SIGKILL)
                wait(int(given))
        print("done", flush=True)


if __name__ == "__main__":
    main()
