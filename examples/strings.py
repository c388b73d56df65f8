"""Find the fastest way to build a string, by interleaved timings on this machine.

Other processes disturb some timings; up to 5% of them may have any value.
Run: python examples/strings.py
"""

import time

import truearm as ta

WORDS = [str(i) for i in range(2000)]


def by_join():
    return "".join(WORDS)


def by_plus():
    text = ""
    for word in WORDS:
        text += word
    return text


def by_format():
    text = ""
    for word in WORDS:
        text = f"{text}{word}"
    return text


def by_list():
    parts = []
    for word in WORDS:
        parts.append(word)  # noqa: PERF402 - the slow way is the point
    return "".join(parts)


def timer(build):
    def pull():
        start = time.perf_counter()
        build()
        return 1e6 * (time.perf_counter() - start)

    return pull


def main():
    ways = {"join": by_join, "+=": by_plus, "f-string": by_format, "list, then join": by_list}
    for build in ways.values():
        build()  # the first call of anything is slow
    arms = {name: timer(build) for name, build in ways.items()}
    policy = ta.TopTwo(balanced=True)  # timings drift with the machine: pull all arms side by side
    result = ta.find_best(arms, goal="min", policy=policy, max_seconds=20)
    print(result)
    for arm in result.arms:
        where = f"[{arm.low:.1f}, {arm.high:.1f}]"
        print(f"  {arm.name:16} {arm.observed:8.1f} us   true median in {where}, {arm.n} pulls")


if __name__ == "__main__":
    main()
