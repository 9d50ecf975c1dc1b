"""Processes that the collector saw."""

from dataclasses import dataclass

from loadstone.audit.document import Document


@dataclass(frozen=True, slots=True)
class SeenProcess:
    """One process."""

    pid: int
    parent: int
    resident_kb: int
    open_files: int  # soft limit; 0: unknown or unlimited
    name: str
    arguments: tuple[str, ...]

    def option(self, *names: str) -> str | None:
        """Return the value of a command-line option: `--name value` or `--name=value`.

        Digits may follow a short name at once: `-m1024`.
        """
        for position, argument in enumerate(self.arguments):
            for name in names:
                if argument == name and position + 1 < len(self.arguments):
                    return self.arguments[position + 1]
                if argument.startswith(f"{name}="):
                    return argument.partition("=")[2]
                is_short = len(name) == 2 and argument.startswith(name)
                if is_short and argument[2:].isdecimal():
                    return argument[2:]
        return None


def read(document: Document) -> tuple[SeenProcess, ...]:
    """Return the processes of a document; lines that are damaged are left out."""
    found = []
    for line in document.text("processes").splitlines():
        fields = line.split("\t")
        if len(fields) < 6 or not all(field.isdigit() for field in fields[:4]):
            continue
        pid, parent, resident, _ = (int(field) for field in fields[:4])
        limit = int(fields[4]) if fields[4].isdigit() else 0
        arguments = tuple(argument for argument in fields[6:] if argument)
        found.append(SeenProcess(pid, parent, resident, limit, fields[5], arguments))
    return tuple(found)


def named(found: tuple[SeenProcess, ...], *names: str) -> tuple[SeenProcess, ...]:
    """Return the processes of these names."""
    return tuple(process for process in found if process.name in names)


def leaders(found: tuple[SeenProcess, ...]) -> tuple[SeenProcess, ...]:
    """Return the processes whose parent is not among them."""
    pids = {process.pid for process in found}
    return tuple(process for process in found if process.parent not in pids)
