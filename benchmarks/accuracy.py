"""How right the analysis is over the failure cases: solved share, field by field, and a confusion matrix of categories.

usage: python benchmarks/accuracy.py [CASES_DIR]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import scoring

from bot.diagnose import diagnose_path


def main() -> int:
    if len(sys.argv) > 1:
        scoring.CASES = Path(sys.argv[1])
    confusion: Counter[tuple[str, str]] = Counter()
    wrong_by_field: Counter[str] = Counter()
    solved = confident = confident_wrong = 0
    cases = scoring.all_cases()
    for case in cases:
        got = diagnose_path(
            str(case.artifact) if case.artifact else None,
            job_log=str(case.job_log) if case.job_log else None,
            job_name=case.job_name,
        ).as_json()
        wrong = scoring.wrong_fields(case.expect, got)
        solved += not wrong
        wrong_by_field.update(wrong.keys())
        sure = got["confidence"] == "high"
        confident += sure
        confident_wrong += sure and bool(wrong.keys() & {"passed", "category", "culprit_ranks"})
        want = "passed" if case.expect.get("passed") else case.expect["category"]
        confusion[want, got["category"] or "passed"] += 1
        if wrong:
            print(f"miss {case.folder.name}: {', '.join(wrong)}")
    print(f"\nsolved on every field: {solved} of {len(cases)} ({solved / len(cases):.1%})")
    print(f"confident: {confident}; confident and wrong about category or culprit: {confident_wrong}")
    print("wrong by field:", ", ".join(f"{name} {n}" for name, n in wrong_by_field.most_common()) or "none")
    print("\ncategory wanted -> given (n)")
    for (want, have), n in sorted(confusion.items()):
        print(f"  {want:20} -> {have:20} {n:3}{'' if want == have else '   <--'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
