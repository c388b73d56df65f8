"""Compare the answers of two versions of truearm on seeded random problems.

Usage: compare.py OLD_SRC NEW_SRC [FIRST [COUNT]]      compare problems FIRST .. FIRST+COUNT-1
       compare.py --answer FIRST COUNT                 print this version's answers, a JSON line each
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "golden"))
from golden_problems import differences, solve


def start(source, first, count):
    env = {**os.environ, "PYTHONPATH": source, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    args = [sys.executable, __file__, "--answer", str(first), str(count)]
    return subprocess.Popen(args, env=env, stdout=subprocess.PIPE, text=True)


def main():
    if sys.argv[1] == "--answer":
        first, count = map(int, sys.argv[2:])
        for i in range(first, first + count):
            print(json.dumps(solve(i)), flush=True)
        return 0
    old_source, new_source = sys.argv[1:3]
    first, count = [int(x) for x in (*sys.argv[3:], *["0", "200"][len(sys.argv) - 3 :])][:2]
    runs = [start(source, first, count) for source in (old_source, new_source)]
    entries, bad, seen = Counter(), Counter(), 0
    for lines in zip(runs[0].stdout, runs[1].stdout):
        old, new = (json.loads(line) for line in lines)
        seen += 1
        entries[old["entry"]] += 1
        if found := list(differences(old, new)):
            bad[old["entry"]] += 1
            print(f"problem {old['problem']} ({old['entry']}): " + "; ".join(found[:6]))
    print(f"{seen} of {count} problems, {sum(bad.values())} differ: {dict(bad)}; {dict(entries)}")
    return 0 if seen == count and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
