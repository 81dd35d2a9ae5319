"""A checkout of the repository under test, given by the user: read within bounds, never executed, never left.

A symbolic link is followed only to a regular file inside the folder; folders behind links are not entered.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from analyzers.model import Diagnosis, Skipped, Source
from analyzers.surroundings import JobRecipe
from analyzers.verdict.changes import MAX_BYTES as MAX_CHANGES
from analyzers.verdict.changes import Changed, ChangeError, read_changes
from analyzers.verdict.import_graph import MAX_FILE_BYTES, ImportSearch, find_imports
from analyzers.verdict.owners import CODEOWNERS_PATHS, find_owners
from analyzers.verdict.owners import MAX_BYTES as MAX_OWNERS
from analyzers.verdict.recipes import MAX_BYTES as MAX_RECIPE
from analyzers.verdict.recipes import CiJob, RecipeError, Workload, find_recipe, read_recipe
from analyzers.verdict.relation import functional_folder, relate_to_change, start_files
from bot.archives import UnreadableError
from config.repo import default_config
from handlers.job_names import read_name

#: Megatron-LM has 4,500 files in 900 folders.
MAX_ENTRIES = 200_000
MAX_RECIPES = 500
RECIPES = "tests/test_utils/recipes"
#: One per platform and environment.
GOLDEN = re.compile(r"/golden_values[\w.-]*\.json$")
MAX_GOLDENS = 50
MAX_GOLDEN = 16 * 1024**2

#: Folders that hold no source of the repository itself.
SKIPPED = frozenset({".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__", "site-packages"})


class Checkout:
    """The files of one folder. Paths are relative to it, with "/" between parts."""

    def __init__(self, folder: Path) -> None:
        """Open a checkout.

        Raises:
            UnreadableError: there is no such folder.
        """
        if not folder.is_dir():
            raise UnreadableError(f"{folder}: not a folder")
        self._root = folder.resolve()

    def read(self, path: str, *, max_bytes: int) -> str | None:
        """Return a file's text (bad UTF-8 replaced); None if absent, too large, no regular file, or outside."""
        try:
            real = (self._root / path).resolve()
            if not real.is_relative_to(self._root):
                return None
            # A named pipe would wait for ever: it is opened without waiting, and refused.
            with os.fdopen(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(max_bytes + 1)
        except (OSError, ValueError, RuntimeError):  # ValueError: NUL in a path; RuntimeError: a loop of links
            return None
        return data.decode("utf-8", "replace") if len(data) <= max_bytes else None

    @cached_property
    def python_files(self) -> frozenset[str]:
        """All Python files, except in folders that hold none of the repository's own."""
        return frozenset(self._walk("", ".py"))

    @cached_property
    def recipes(self) -> tuple[tuple[Workload, ...], tuple[Skipped, ...]]:
        """The rows of all recipes, and the recipes that could not be read."""
        rows: list[Workload] = []
        skipped: list[Skipped] = []
        for path in sorted(self._walk(RECIPES, ".yaml"))[:MAX_RECIPES]:
            text = self.read(path, max_bytes=MAX_RECIPE)
            try:
                rows += read_recipe(path, text or "")
            except RecipeError as why:
                skipped.append(Skipped(path, str(why).removeprefix(f"{path}: ")))
        return tuple(rows), tuple(skipped)

    def recipe(self, job_name: str) -> JobRecipe | None:
        """Return what the recipes say about a test job; None for another job, or one that no recipe has."""
        config = default_config()
        job = read_name(job_name, config.jobs)
        rows, _ = self.recipes
        if job.kind == "unit":
            platform, tag = "gb200" if job.gb200 else "h100", job_name.rpartition(" ")[2]
            return find_recipe(rows, CiJob("unit", job.bucket, platform=platform, tag=tag))
        if job.kind == "functional":
            model, _, test_case = job.bucket.partition("/")
            scopes = frozenset(plan.scope for plan in config.plans)
            return find_recipe(rows, CiJob("functional", test_case, model=model, scopes=scopes))
        return None

    def goldens(self, job_name: str) -> tuple[Source, ...]:
        """Return the golden values that a functional job's results are compared with, one source per platform."""
        folder = _folder(job_name)
        if folder is None:
            return ()
        paths = sorted(path for path in self._walk(folder, ".json") if GOLDEN.search(path))[:MAX_GOLDENS]
        return tuple(Source(path, partial(self._chunks, path)) for path in paths)

    def _chunks(self, path: str) -> Iterator[bytes]:
        yield (self.read(path, max_bytes=MAX_GOLDEN) or "").encode()

    def owners(self, path: str) -> tuple[str, ...]:
        """Return the owners of a path after the first CODEOWNERS file that GitHub would read."""
        for place in CODEOWNERS_PATHS:
            text = self.read(place, max_bytes=MAX_OWNERS)
            if text is not None:
                return find_owners(path, text).owners
        return ()

    def _walk(self, under: str, suffix: str) -> Iterator[str]:
        top = (self._root / under).resolve()
        if not top.is_relative_to(self._root):
            return
        seen = 0
        for folder, folders, files in os.walk(top, followlinks=False):
            folders[:] = sorted(set(folders) - SKIPPED)
            seen += len(folders) + len(files)
            if seen > MAX_ENTRIES:
                raise UnreadableError(f"{self._root}: more than {MAX_ENTRIES} files; give the repository's own folder")
            base = Path(folder).relative_to(self._root)
            yield from ((base / name).as_posix() for name in files if name.endswith(suffix))


def read_changed(path: Path) -> Changed:
    """Read what `--changed-files` names: one path per line, or a unified diff.

    Raises:
        UnreadableError: the file cannot be read, or is a broken diff.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CHANGES + 1)
        return read_changes(data.decode("utf-8", "replace"))
    except OSError as why:
        raise UnreadableError(f"{path}: {why.strerror}") from why
    except ChangeError as why:
        raise UnreadableError(f"{path}: {why}") from why


def relate(
    diagnosis: Diagnosis, checkout: Checkout | None, changed: Changed | None, *, job_name: str | None = None
) -> Diagnosis:
    """Add to a failure what the repository and the change tell: relation, owners of the location, the job's recipe.

    Without a checkout, imports are not followed; without a change there is no relation.
    """
    if diagnosis.passed:
        return diagnosis
    recipe = checkout.recipe(job_name) if checkout and job_name else None
    if checkout is not None:
        place = (diagnosis.location or "").rpartition(":")[0]
        read = replace(diagnosis.read, skipped=diagnosis.read.skipped + checkout.recipes[1])
        owners = checkout.owners(place) if place else ()
        diagnosis = replace(diagnosis, owners=owners, recipe=recipe, read=read)
    if changed is None:
        return diagnosis
    imports = _imports(diagnosis, checkout, changed) if checkout else None
    folder = _folder(job_name) if job_name else None
    return replace(diagnosis, relation=relate_to_change(diagnosis, changed, imports=imports, folder=folder))


def _imports(diagnosis: Diagnosis, checkout: Checkout, changed: Changed) -> ImportSearch | None:
    script = diagnosis.recipe.training_script if diagnosis.recipe else None
    starts = tuple(path for path in start_files(diagnosis, script) if path in checkout.python_files)
    if not starts:
        return None

    def read(path: str) -> str | None:
        return checkout.read(path, max_bytes=MAX_FILE_BYTES)

    return find_imports(starts, changed.files, checkout.python_files, read)


def _folder(job_name: str) -> str | None:
    job = read_name(job_name, default_config().jobs)
    model, _, test_case = job.bucket.partition("/")
    return functional_folder(model, test_case) if job.kind == "functional" else None
