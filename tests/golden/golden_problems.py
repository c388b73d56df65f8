"""Seeded random problems for every entry point, and how two answers to one of them are compared.

Problem number i is a function of i alone, so that a difference can be looked at by its number.
"""

import math

import numpy as np

ENTRIES = [
    *("analyze", "fixed", "unit", "round", "control", "tiers", "pairs", "between", "long", "study", "study-late"),
    *("study-arrays", "study-rounds", "find", "find-rounds", "policy", "suite", "engine"),
]
ACCURACY = 1e-5  # relative, of numbers; searches return a bound within their own accuracy


def readings(rng, arms, n, gap):
    """Return random readings per arm: several laws, ties, spikes, missing values, time-outs."""
    law = rng.choice(["normal", "cauchy", "lognormal", "few", "binary", "equal"])
    tapes = {}
    for i, arm in enumerate(arms):
        size = int(n * rng.uniform(0.5, 1.5)) + 1
        shift = -gap * i if law != "equal" else 0.0
        if law == "cauchy":
            x = shift + rng.standard_cauchy(size)
        elif law == "lognormal":
            x = np.exp(shift + rng.normal(0, 0.5, size))
        elif law == "few":
            x = np.round(3 + shift + rng.normal(0, 1, size))
        elif law == "binary":
            x = (rng.random(size) < np.clip(0.8 + shift / 4, 0.05, 0.95)).astype(float)
        else:
            x = 10 + shift + rng.normal(0, 1, size)
        bad = rng.random(size) < rng.choice([0.0, 0.0, 0.03])
        x = np.where(bad, rng.choice([-50.0, 60.0, 1e6]), x)
        if rng.random() < 0.2:
            x = np.where(rng.random(size) < 0.03, np.nan, x)
        tapes[arm] = x
    return tapes


def setting(rng, k):
    """Return random problem arguments."""
    kind = rng.choice(["median", "median", "quantile", "share"])
    options = {
        "delta": float(rng.choice([0.05, 0.1, 0.01])),
        "contamination": [0.05, 0.0, 0.02, 0.1, None, 0.05][rng.integers(6)],
        "goal": str(rng.choice(["max", "min"])),
    }
    if kind == "quantile":
        options["quantile"] = float(rng.choice([0.25, 0.75, 0.9]))
    elif kind == "share":
        del options["goal"]
        options[str(rng.choice(["at_least", "at_most"]))] = float(rng.choice([1.0, 3.0, 10.0]))
    if rng.random() < 0.25:
        options["tolerance"] = [0.3, "5%"][rng.integers(2)] if kind != "share" else 0.05
    return options


def long(tapes, rng):
    """Return tapes as columns arm, value, unit, round in random order of rows."""
    arm = np.concatenate([[name] * x.size for name, x in tapes.items()])
    value = np.concatenate(list(tapes.values()))
    unit = np.concatenate([np.arange(x.size) // 3 + 10_000 * i for i, x in enumerate(tapes.values())])
    turn = np.concatenate([np.arange(x.size) for x in tapes.values()])
    order = rng.permutation(arm.size)
    return {"arm": arm[order].tolist(), "v": value[order], "unit": unit[order], "round": turn[order]}


def solve(i):
    """Return the answer to problem i as plain values."""
    import truearm as ta

    rng = np.random.default_rng(i)
    k = int(rng.choice([1, 2, 2, 2, 3, 4, 6], p=[0.02, 0.28, 0.2, 0.1, 0.2, 0.1, 0.1]))
    arms = [f"arm{j}" for j in range(k)]
    if rng.random() < 0.5:
        arms = arms[::-1]
    entry = str(rng.choice(ENTRIES))
    tapes = readings(rng, arms, int(rng.choice([20, 100, 300, 900])), float(rng.choice([0.0, 0.5, 1.0, 2.0])))
    options = setting(rng, k)
    for key in {"at_least", "at_most"} & options.keys():
        options[key] = float(np.round(np.nanmedian(np.concatenate(list(tapes.values()))), 1))
    try:
        if entry.startswith(("study", "find", "policy")):
            answer = adaptive(ta, entry, rng, tapes, options)
        else:
            answer = fixed(ta, entry, rng, tapes, options)
    except ta.TruearmError as error:
        answer = {"error": type(error).__name__}
    return {"problem": i, "entry": entry, **answer}


def fixed(ta, entry, rng, tapes, options):
    """Answer from data that are there."""
    names = list(tapes)
    if entry == "suite":
        n = min(x.size for x in tapes.values())
        columns = {"arm": names * n, "round": [r for r in range(n) for _ in names]}
        for metric in "xyz":
            noise = rng.normal(0, 1, (n, len(names)))
            columns[metric] = (100 + noise + np.arange(len(names)) * rng.choice([0, 0.5, 3])).ravel().tolist()
        found = ta.suite(columns, arm="arm", round="round", reference=names[0], tolerance="1%", higher=["y"])
        return {"suite": [(c.arm, c.metric, c.standing, c.breakdown.oblivious) for c in found.compared]}
    frame = tapes if entry == "analyze" else long(tapes, rng)
    more = {} if entry == "analyze" else {"arm": "arm", "value": "v"}
    more |= {"fixed": {"design": "fixed"}, "between": {"between": (-30.0, 40.0)}}.get(entry, {})
    if entry in ("unit", "round"):
        more[entry] = entry
    if entry == "round":
        for key in ("quantile", "at_least", "at_most"):
            options.pop(key, None)
    if entry == "control":
        more |= {"control": names[-1], "fdr": bool(rng.random() < 0.5)}
    if entry in ("tiers", "pairs"):
        more[entry] = True
    if entry == "engine":
        import polars as pl

        frame = pl.DataFrame({**frame, "round": frame["round"]}).lazy()
    found = ta.analyze(frame, **more, **options)
    answer = plain(found)
    if entry != "engine":
        answer["verified"] = bool(ta.verify(found, found.readings) if found.readings is not None else True)
    return answer


def adaptive(ta, entry, rng, tapes, options):
    """Answer by asking for readings."""
    names = list(tapes)
    draws = {arm: np.random.default_rng([j, *arm.encode()]) for j, arm in enumerate(names)}

    def draw(arm):
        return float(draws[arm].choice(tapes[arm]))

    rounds = entry.endswith("rounds")
    if rounds:
        for key in ("quantile", "at_least", "at_most"):
            options.pop(key, None)
        if options.get("contamination", 0) is not None:
            options["contamination"] = options.get("contamination", 0.05)
    more = {"max_pulls": int(rng.choice([200, 1000, 3000])), "seed": int(rng.integers(100)), "rounds": rounds}
    if entry == "policy":
        more["policy"] = str(rng.choice(["elimination", "uniform", "lucb"]))
        options.pop("tolerance", None)
        options.pop("quantile", None)
        options["regularity"] = ta.Regularity(B=1.2, m2=0.6, reach=0.4)
        for key in ("at_least", "at_most"):
            options.pop(key, None)
    if entry.startswith("find"):
        found = ta.find_best({arm: lambda arm=arm: draw(arm) for arm in names}, **more, **options)
        return {**plain(found), "verified": bool(ta.verify(found))}
    study = ta.Study(names, **more, **options)
    late = []
    while not study.done:
        if entry == "study-arrays":
            asked = study.ask_counts()
            study.tell_arrays({arm: np.array([draw(arm) for _ in range(n)]) for arm, n in asked.items()})
            continue
        pulls = study.ask(4) if entry == "study-late" else study.ask()
        if not pulls and not late:
            break
        if entry == "study-late":
            late += pulls
            order = rng.permutation(len(late))
            cut = max(1, len(late) // 2)
            for place in order[:cut]:
                if rng.random() < 0.05 and not rounds:
                    study.release(late[place])
                else:
                    study.tell(late[place], draw(late[place].arm))
            late = [late[place] for place in order[cut:]]
        else:
            for pull in pulls:
                study.tell(pull, draw(pull.arm))
    return plain(study.result)


def plain(found):
    """Return the parts of a result that must not change."""
    doc = found.to_dict()
    keep = "status best leader ties may_tie candidates pulls breakdown breakdown_estimate"
    answer = {key: doc[key] for key in keep.split()}
    answer["tolerance"] = doc["certified_tolerance"]
    answer["better_by"] = doc["better_by"]
    answer["arms"] = [{k: v for k, v in arm.items() if not k.startswith("mad")} for arm in doc["arms"]]
    answer["doubts"] = sorted((d["kind"], d["arm"]) for d in doc["doubts"])
    answer["control"] = doc.get("control")
    for key in ("ranking", "excluded", "contests", "tiers", "missing", "outside"):
        if key in doc:
            answer[key] = doc[key]
    return answer


def differences(old, new, path=""):
    """Yield the places where two answers differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{path}[{place}]")
    elif isinstance(old, float) or isinstance(new, float):
        same = isinstance(old, int | float) and isinstance(new, int | float)
        if not (same and math.isclose(old, new, rel_tol=ACCURACY, abs_tol=1e-7)):
            yield f"{path}: {old} -> {new}"
    elif old != new:
        yield f"{path}: {old} -> {new}"
