"""Measure what the docs claim, and keep the table of claims in docs/verification.md.

make verify LIST=1 | make verify ONLY=search,fleet-counts | make verify QUICK=1
"""

import argparse
import sys

from loadstone.system import interrupts
from verification import check, claim, page, parts, run
from verification.part import Part
from verification.timing import expected_s, shown


def main() -> int:
    """Return 0 if all parts that ran passed, 1 if one failed, 2 for unknown names."""
    parser = argparse.ArgumentParser(
        prog="python -m verification",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="show what there is to run")
    parser.add_argument("--only", default="", metavar="NAMES", help="parts or topics, by comma")
    parser.add_argument(
        "--quick", action="store_true", help="next to no load: proves that the parts run"
    )
    parser.add_argument("--page", action="store_true", help="write docs/verification.md")
    options = parser.parse_args()
    try:
        selected = parts.chosen(options.only)
    except LookupError as problem:
        print(f"verify: {problem.args[0]}", file=sys.stderr)
        return 2
    if options.list:
        print(listed(selected) if options.only else topics(selected))
        return 0
    if options.page:
        page.PAGE.write_text(check.rendered())
        return 0
    # A part runs in a session of its own, so that nothing else ends it.
    interrupts.interrupt_on_signals()
    ended = run.run(selected, is_quick=options.quick)
    if not options.quick:
        page.PAGE.write_text(check.rendered())
    print(run.summary(ended))
    if ended and ended[-1].why == "interrupted":
        return interrupts.exit_code()
    return 1 if any(one.outcome is run.Outcome.FAILED for one in ended) else 0


def topics(every: tuple[Part, ...]) -> str:
    """Return a line for each topic, and what to run first."""
    measured_s = claim.results().seconds
    lines = ["make verify ONLY=NAMES   a comma list of topics and parts", ""]
    lines.append(f"{'topic':11} parts   about  what it shows")
    for topic, shows in parts.TOPICS.items():
        own = [one for one in every if one.topic == topic]
        if own:
            about = shown(sum(expected_s(one, measured_s) for one in own))
            lines.append(f"{topic:11} {len(own):5} {about:>7}  {shows}")
    lines += ["", "Run and trust first, because the truth is set, or counted by others:"]
    lines += [_line(one, measured_s) for one in every if one.is_first]
    return "\n".join([*lines, "", "The parts of a topic: make verify LIST=1 ONLY=TOPIC"])


def listed(selected: tuple[Part, ...]) -> str:
    """Return a line for each part."""
    measured_s = claim.results().seconds
    lines = []
    for one in selected:
        lacking = one.missing()
        lines.append(_line(one, measured_s) + (f" (needs {lacking})" if lacking else ""))
    return "\n".join(lines)


def _line(one: Part, measured_s: dict[str, float]) -> str:
    return f"{one.name:20} {shown(expected_s(one, measured_s)):>7}  {one.shows}"


if __name__ == "__main__":
    sys.exit(main())
