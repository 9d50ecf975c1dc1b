"""Says which settings of keystone.conf this environment's Keystone does not know or accept.

Reads [[section, option, value], ...] as JSON from standard input, and prints a JSON list with a
message for each wrong one. The argument names the release. Also runs on Python 3.6.
"""
# mypy: ignore-errors
# Keystone is installed in the lab's environment only.

import difflib
import json
import sys

from stevedore import extension

# The source of Keystone's own sample configuration (config-generator/keystone.conf).
LIBRARIES = ("keystone", "osprofiler")
MANY = 12


def read_options():
    """Return {section: {name: option}}, including deprecated names."""
    options_by_section = {}
    for entry_point in extension.ExtensionManager("oslo.config.opts"):
        if entry_point.name in LIBRARIES or entry_point.name.startswith("oslo."):
            for group, options in entry_point.plugin():
                section = getattr(group, "name", group) or "DEFAULT"
                for option in options:
                    options_by_section.setdefault(section, {})[option.dest] = option
                    options_by_section[section][option.name] = option
                    for old in option.deprecated_opts:
                        place = options_by_section.setdefault(old.group or section, {})
                        place[(old.name or option.dest).replace("-", "_")] = option
    return options_by_section


def near(known, section, option):
    """Return the most similar setting, or None."""
    names = {f"{s}.{o}": (s, o) for s, options in known.items() for o in options}
    found = difflib.get_close_matches(option, known.get(section, ()), 1, 0.75)
    if found:
        return [section, found[0]]
    same = [s for s, options in known.items() if option in options]
    if same:
        return [(difflib.get_close_matches(section, same, 1, 0.0) or same)[0], option]
    found = difflib.get_close_matches(f"{section}.{option}", names, 1, 0.7)
    return list(names[found[0]]) if found else None


def problem(release, known, section, option, value):
    """Describe what is wrong with a setting, or return None."""
    key = f"conf.{section}.{option}"
    if section not in known or option not in known[section]:
        missing = f"option {option} in [{section}]" if section in known else f"[{section}]"
        similar, names = near(known, section, option), sorted(known.get(section, ()))
        hint = f"; [{section}] has {', '.join(names)}" if 0 < len(names) <= MANY else ""
        if similar:
            hint = f"; did you mean conf.{'.'.join(similar)}?"
        return f"{key}: Keystone {release} has no {missing}{hint}"
    if "$" in value:  # refers to another option, which is known only once all are read
        return None
    try:
        known[section][option].type(value)
    except (TypeError, ValueError) as wrong:
        why = " ".join(str(wrong).split())
        return f"{key}={value}: Keystone {release} does not take it: {why}"
    return None


def main():
    """Check the settings on standard input."""
    known = read_options()
    found = [problem(sys.argv[1], known, *setting) for setting in json.load(sys.stdin)]
    print(json.dumps([one for one in found if one]))


if __name__ == "__main__":
    main()
