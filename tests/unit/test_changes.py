"""A change is read from a list of paths or from a diff as git writes it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from analyzers.verdict.changes import Changed, ChangeError, changed_files, read_changes

DIFF = """\
diff --git a/pkg/a.py b/pkg/a.py
index 1111111..2222222 100644
--- a/pkg/a.py
+++ b/pkg/a.py
@@ -1,4 +1,5 @@ def f():
 one
-two
+deux
 three
+trois et demi
 four
@@ -20,3 +21,2 @@
 x
-y
 z
diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 3333333..0000000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/bin.dat b/bin.dat
new file mode 100644
index 0000000..4444444
Binary files /dev/null and b/bin.dat differ
"""


def test_a_diff_tells_files_and_added_lines() -> None:
    found = read_changes(DIFF)
    assert found.files == {"pkg/a.py", "old.py", "new.py", "gone.py", "bin.dat"}
    assert dict(found.lines) == {"pkg/a.py": ((2, 2), (4, 4)), "new.py": ()}
    assert [found.has_line("pkg/a.py", line) for line in (1, 2, 3, 4, 22)] == [False, True, False, True, False]
    assert found.has_line("new.py", 1) is False
    assert found.has_line("bin.dat", 1) is None


def test_a_list_tells_files_alone() -> None:
    found = read_changes("./pkg/a.py\r\n\n  docs/b c.md  \npkg/a.py\n")
    assert found == Changed(frozenset({"pkg/a.py", "docs/b c.md"}))
    assert found.has_line("pkg/a.py", 1) is None
    assert changed_files(["pkg/a.py", ""]).files == {"pkg/a.py"}


@pytest.mark.parametrize("text", ["", "\n", "   \n\n"])
def test_nothing_is_an_empty_change(text: str) -> None:
    assert read_changes(text) == Changed()


@pytest.mark.parametrize("cut", [DIFF[: DIFF.index(" three")], DIFF[DIFF.index("@@ -1,4") :]])
def test_a_broken_diff_is_no_list_of_files(cut: str) -> None:
    with pytest.raises(ChangeError, match="not a complete unified diff"):
        read_changes(cut)


def test_a_plain_diff_without_git() -> None:
    text = "--- a/x.py\t2026-01-01\n+++ b/x.py\t2026-01-02\n@@ -0,0 +1,3 @@\n+1\n+2\n+3\n"
    assert dict(read_changes(text).lines) == {"x.py": ((1, 3),)}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("options", [(), ("-U0",), ("--binary",), ("-M",), ("--no-renames",)])
def test_what_git_writes_is_read(tmp_path: Path, options: tuple[str, ...]) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.quotePath=true")
        command = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    (tmp_path / "a dir").mkdir()
    (tmp_path / "a dir" / "é.py").write_text("1\n", encoding="utf-8")
    (tmp_path / "moved.py").write_text("".join(f"{n}\n" for n in range(50)))
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "a dir" / "é.py").write_text("1\n2\n3", encoding="utf-8")
    (tmp_path / "moved.py").rename(tmp_path / "here.py")
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    git("add", "-A")
    found = read_changes(git("diff", "--cached", *options))
    assert found.files == {"a dir/é.py", "moved.py", "here.py", "data.bin"}
    assert found.lines["a dir/é.py"] == ((2, 3),)
