"""What CI does with the labels of a pull request, and what a plan job says that it did."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from config.repo import RepoConfig

#: `echo "scope=$SCOPE" | tee`: the value in the log is what the jobs got; the script's own text has a `$` or a quote.
OUTPUT = re.compile(r"(?:^|Z |\s)(?P<name>[a-z_]+)=(?P<value>[A-Za-z0-9_.-]*)[ \t\r]*$", re.MULTILINE)
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class Plan:
    """What a run tests. `outranked` are labels that change nothing because another stands above them."""

    scope: str
    n_repeat: int
    lightweight: bool
    image: str
    extras: tuple[str, ...] = ()
    label: str | None = None
    outranked: tuple[str, ...] = ()

    @property
    def effect(self) -> tuple[object, ...]:
        """What distinguishes two plans for CI, whatever label led there."""
        return (self.scope, self.n_repeat, self.lightweight, self.image, *self.extras)


def plan_for(labels: Iterable[str], config: RepoConfig) -> Plan:
    """Work out the plan from the labels: the first rule whose label is present wins."""
    present = set(labels)
    matching = [rule for rule in config.plans if rule.label is None or rule.label in present]
    rule = matching[0]
    images = [image for label, image in config.images.items() if label in present]
    return Plan(
        scope=rule.scope,
        n_repeat=rule.n_repeat,
        lightweight=rule.lightweight,
        image=images[0] if images else config.default_image,
        extras=tuple(sorted(output for label, output in config.extras.items() if label in present)),
        label=rule.label,
        outranked=tuple(other.label for other in matching[1:] if other.label),
    )


def read_plan(log: str, config: RepoConfig) -> Plan | None:
    """Read from the plan job's log which plan the run really follows; None if the log does not say.

    The last value of each output counts: the script is shown before it runs.
    """
    outputs = {match["name"]: match["value"] for match in OUTPUT.finditer(log)}
    scope, repeat, light = (outputs.get(name, "") for name in ("scope", "n_repeat", "lightweight"))
    if not scope or not repeat.isdecimal() or light not in {"true", "false"}:
        return None
    images = [image for image in config.images.values() if outputs.get(image) == "true"]
    return Plan(
        scope=config.scope_aliases.get(scope, scope),
        n_repeat=int(repeat),
        lightweight=light == "true",
        image=images[0] if images else config.default_image,
        extras=tuple(sorted(name for name in config.extras.values() if outputs.get(name) == "true")),
    )


def read_tested_sha(log: str) -> str | None:
    """Read from the plan job's log which commit the run builds and tests."""
    shas = [match["value"] for match in OUTPUT.finditer(log) if match["name"] == "sha"]
    return shas[-1] if shas and SHA.fullmatch(shas[-1]) else None
