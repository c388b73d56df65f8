"""A verifier of claims, made from docs/certificate.md alone: nothing here but the standard library."""

import hashlib
import math
import struct
from bisect import bisect_left, bisect_right
from functools import cache, partial

PRIOR = ((16.0, 0.6), (512.0, 0.4))
PRIOR_OF_ROUNDS = ((6.0, 0.5), (100.0, 0.5))


class Wrong(Exception):
    """A part of a document that does not follow."""


def check(right, what):
    if not right:
        raise Wrong(what)


def close(one, other, accuracy=1e-6):
    return one == other or math.isclose(one, other, rel_tol=accuracy)


def tapes_of(document):
    tapes = {arm: [None if x is None else float(x) for x in tape] for arm, tape in document["readings"].items()}
    certificate = document["certificate"]
    if not certificate["problem"]["rounds"] or (certificate["origin"] or {}).get("by") != "analyze":
        return tapes
    last = max(map(len, tapes.values()))  # of an analysis every tape goes on to the last round
    return {arm: tape + [math.nan] * (last - len(tape)) for arm, tape in tapes.items()}


def digest_of(arms, tapes):
    """Return the fingerprint of the readings."""
    mark = hashlib.sha256()
    for arm in arms:
        tape = tapes[arm]
        told = bytes(x is not None for x in tape)
        values = b"".join(
            bytes.fromhex("000000000000f87f")
            if x is not None and math.isnan(x)
            else struct.pack("<d", (x or 0.0) + 0.0)
            for x in tape
        )
        for piece in (arm.encode(), told, values):
            mark.update(struct.pack("<Q", len(piece)) + piece)
    return mark.hexdigest()


# The mixture


def log_partial_beta(a, b, x):
    """Return the logarithm of the integral of t^(a-1) (1-t)^(b-1) over 0 < t < x."""
    if x < (a + 1) / (a + b + 2):
        return a * math.log(x) + b * math.log1p(-x) - math.log(a) + math.log(fraction(a, b, x))
    whole = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    rest = b * math.log1p(-x) + a * math.log(x) - math.log(b) + math.log(fraction(b, a, 1 - x))
    return whole + math.log1p(-math.exp(rest - whole))


def fraction(a, b, x):
    """Return the classical continued fraction of the incomplete beta function, by Lentz's method."""
    d = 1 / (1 - (a + b) * x / (a + 1))
    c, h = 1.0, d
    for m in range(1, 5000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / (1 + even * d), 1 + even / c
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + odd * d), 1 + odd / c
        h *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return h


@cache
def log_m(s, n, p, prior=PRIOR):
    if p <= 0:
        return 0.0
    logs = [
        math.log(w) + log_partial_beta(c * p + s, c * (1 - p) + n - s, p) - log_partial_beta(c * p, c * (1 - p), p)
        for c, w in prior
    ]
    return log_sum(logs) - s * math.log(p) - (n - s) * math.log1p(-p)


def log_sum(logs):
    top = max(logs)
    return top if top == -math.inf else top + math.log(sum(math.exp(x - top) for x in logs))


@cache
def log_tail(count, n, p):
    """Return -ln P(Bin(n, p) <= count)."""
    if p <= 0:
        return 0.0
    logs = [
        math.lgamma(n + 1)
        - math.lgamma(i + 1)
        - math.lgamma(n - i + 1)
        + i * math.log(p)
        + (n - i) * math.log1p(-p)
        for i in range(count + 1)
    ]
    return -max(min(log_sum(logs), 0.0), math.log(1e-300))


# Samples and levels


class Sample:
    """The first n pulls of an arm, oriented."""

    def __init__(self, tape, n, between):
        head, (low, high) = tape[:n], between
        known = sorted(x for x in head if x is not None and not math.isnan(x))
        self.values = [x for x in known if x == -math.inf or low <= x <= high]
        self.n, self.pending, self.outside = n, head.count(None), len(known) - len(self.values)
        self.unknown = n - len(known)

    def below(self, cut, *, closed):
        found = (bisect_right if closed or cut == -math.inf else bisect_left)(self.values, cut)
        return found + self.unknown

    def at(self, rank):
        return -math.inf if rank < 1 else math.inf if rank > len(self.values) else self.values[rank - 1]


class Judge:
    """What the problem asks for, and the readings."""

    def __init__(self, certificate, tapes):
        self.certificate, self.problem = certificate, certificate["problem"]
        self.arms = self.problem["arms"]
        self.sign = 1 if self.problem["goal"] == "max" else -1
        self.q = self.problem["quantile"] if self.sign > 0 else 1 - self.problem["quantile"]
        self.shown = {arm: [None if x is None else self.sign * x for x in tapes[arm]] for arm in self.arms}
        given = self.problem["handicap"]
        self.tapes = {
            arm: [x if x is None or not given or given["arm"] != arm else self.handicapped(x, given) for x in tape]
            for arm, tape in self.shown.items()
        }
        self.low, self.high = self.levels()
        self.shares = self.problem["at_least"] is not None or self.problem["at_most"] is not None
        if self.shares:
            self.tapes = {arm: self.successes(arm) for arm in self.arms}

    def successes(self, arm):
        """Return an arm's readings as successes and failures."""
        least, most = (self.problem[key] for key in ("at_least", "at_most"))
        return [
            x if x is None or math.isnan(x) else float(x >= least if least is not None else x <= most)
            for x in self.shown[arm]
        ]

    def levels(self):
        c = self.problem["contamination"] or {"eps": 0.0, "adversary": "oblivious"}
        eps, q = c["eps"], self.q
        if c["adversary"] == "malicious":
            return q - eps, 1 - q - eps
        return (1 - eps) * q, (1 - eps) * (1 - q)

    def handicapped(self, x, given):
        found, limit = self.worse(x, given["tolerance"]), given["limit"]
        return -math.inf if limit is not None and found < self.sign * limit else found

    def worse(self, x, tolerance):
        amount = tolerance["amount"]
        if not tolerance["relative"]:
            return x - amount
        if self.sign * x <= 0:
            return x
        return x / (1 + amount) if self.sign > 0 else x * (1 + amount)

    def rule(self):
        c, certificate = self.problem["contamination"], self.certificate
        if self.problem["rounds"]:
            return "paired"
        if certificate["design"] == "fixed":
            return "fixed"
        if self.problem["dependent_arms"]:
            return "dependent"
        if c and (c["causal"] is False or (c["causal"] is None and c["adversary"] != "oblivious")):
            return "clairvoyant"
        return "pooled" if certificate["entries"] else "causal"

    def log_threshold(self, rule):
        rivals, delta = max(1, len(self.arms) - 1), self.problem["delta"]
        if rule == "clairvoyant":
            low, high = 1.0, 1e300
            for _ in range(3000):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if (1 + math.log(middle)) / middle > delta else (low, middle)
            return math.log(rivals * low)
        return math.log(
            {
                "causal": rivals / delta,
                "pooled": 1 / delta,
                "dependent": 4 * rivals / delta**2,
                "fixed": 2 * rivals / delta,
                "paired": 2 * rivals / delta,
            }[rule]
        )

    def sample(self, arm, n, tapes=None):
        ends = sorted(self.sign * float(end) for end in self.problem["between"] or (-math.inf, math.inf))
        return Sample((tapes or self.tapes)[arm], n, ends)

    # Evidence

    def counts(self, claim):
        if claim["counts"] is None:
            return {arm: len(self.tapes[arm]) for arm in self.arms}
        return dict(zip(self.arms, claim["counts"], strict=True))

    def evidence(self, claim, rule):
        """Return ln E, the least over all places looked at."""
        counts, fixed = self.counts(claim), self.certificate["design"] == "fixed"
        if self.problem["rounds"]:
            return self.rounds(claim, counts, fixed=fixed)
        own = self.sample(claim["arm"], counts[claim["arm"]])
        places, up, bet = (self.of_share if self.shares else self.of_cuts)(claim, own, rule, fixed=fixed)
        least = min(up(place) + self.bets(claim, counts, rule, partial(bet, place)) for place in places)
        return max(0.0, least) - math.log1p(max(0.0, least)) if fixed else least

    def bets(self, claim, counts, rule, bet):
        whole, k = bet(claim["leader"], counts[claim["leader"]]), len(self.arms)
        if rule != "pooled" or k == 2:
            return whole
        share = 0.5 if self.problem["tolerance"]["amount"] else 0.05
        whole += math.log(share / (k - 1))
        if claim["tolerant"]:
            return whole
        followed = math.log1p(-share)
        for leg in self.legs(claim):
            end = min(leg["until"], counts[leg["arm"]])
            followed += bet(leg["arm"], end, leg=True) - bet(leg["arm"], leg["since"], leg=True, out=True)
        return log_sum([followed, whole])

    def legs(self, claim):
        return [e for e in self.certificate["entries"][: claim["entered"]] if e["arm"] != claim["arm"]]

    def rounds(self, claim, counts, *, fixed):
        n = min(counts[claim["arm"]], counts[claim["leader"]])
        pairs = list(zip(self.tapes[claim["leader"]][:n], self.tapes[claim["arm"]][:n], strict=True))
        if claim["tolerant"]:
            pairs = [(x, None if y is None else self.worse(y, self.problem["tolerance"])) for x, y in pairs]
        won = sum(None not in pair and pair[0] > pair[1] for pair in pairs)
        c = self.problem["contamination"] or {"eps": 0.0, "adversary": "oblivious"}
        level = 0.5 - 2 * c["eps"] if c["adversary"] == "malicious" else (1 - 2 * c["eps"]) / 2
        return log_tail(n - won, n, level) if fixed else log_m(n - won, n, level, PRIOR_OF_ROUNDS)

    def of_share(self, claim, own, _, *, fixed):
        successes, a = own.values.count(1.0) + own.unknown, 0.0
        if claim["tolerant"]:
            a = self.problem["tolerance"]["amount"]

        def bet(t, arm, n, *, leg=False, out=False):
            sample, level = self.sample(arm, n), 1 - t + a
            down = sample.values.count(0.0) + sample.unknown - (sample.pending if out else 0)
            return self.share_term(down, n, min(level, 1 - 1e-6) if leg else level, fixed=fixed)

        places = (a + (1 - a) * i / 2_000 for i in range(2_001))
        return places, lambda t: self.share_term(successes, own.n, t, fixed=fixed), bet

    def share_term(self, s, n, t, *, fixed):
        c = self.problem["contamination"] or {"eps": 0.0, "adversary": "oblivious"}
        level = max(0.0, t - c["eps"]) if c["adversary"] == "malicious" else (1 - c["eps"]) * t
        if fixed:
            return log_tail(s, n, level) if level < 1 else (0.0 if s == n else -math.log(1e-300))
        if level <= 0:
            return math.log(0.05) if s else 0.0
        return math.inf if level >= 1 else log_sum([math.log(0.95) + log_m(s, n, level), math.log(0.05)])

    def of_cuts(self, claim, own, rule, *, fixed):
        """Return where to look: at the judged arm's readings, where a leg gives way, and beyond all."""
        term, cuts, place = log_tail if fixed else log_m, set(own.values), self.arms.index
        if rule == "pooled" and not claim["tolerant"] and len(self.arms) > 2:
            for leg in self.legs(claim):
                closed = place(leg["arm"]) > place(claim["arm"])
                early = (x for x in self.sample(leg["arm"], leg["since"]).values if x > -math.inf)
                cuts.update(math.nextafter(x, -math.inf) if closed else x for x in early)

        def up(cut):
            above = 0 if cut is None else len(own.values) - bisect_left(own.values, cut)
            return term(own.unknown + above, own.n, self.high)

        def bet(cut, arm, n, *, leg=False, out=False):
            del leg
            if cut is not None and claim["tolerant"]:
                cut = self.worse(cut, self.problem["tolerance"])
            closed, sample = not claim["tolerant"] and place(arm) > place(claim["arm"]), self.sample(arm, n)
            found = len(sample.values) + sample.unknown if cut is None else sample.below(cut, closed=closed)
            return term(found - (sample.pending if out else 0), n, self.low)

        return (*sorted(cuts), None), up, bet

    # Single arms

    def rank(self, n, p):
        share = self.problem["delta"] / (2 * len(self.arms))
        found = 0
        for r in range(1, min(n, math.ceil(n * p)) + 1 if p > 0 else 1):
            if self.certificate["design"] == "fixed":
                holds = -log_tail(r - 1, n, p) <= math.log(share) - 1e-9
            else:
                holds = log_m(r - 1, n, p) >= -math.log(share) + 1e-9
            if not holds:
                break
            found = r
        return found

    def interval(self, arm):
        n = len(self.shown[arm])
        sample = self.sample(arm, n, self.shown)
        if not n:
            return -math.inf, math.inf
        low = sample.at(self.rank(n, self.low) - sample.unknown)
        high = sample.at(n + 1 - self.rank(n, self.high) - sample.outside)
        high = math.inf if high == -math.inf else high
        return (low, high) if self.sign > 0 else (-high, -low)

    def observed(self, arm):
        sample = self.sample(arm, len(self.shown[arm]), self.shown)
        size = len(sample.values)
        return self.sign * sample.at(max(1, math.ceil(self.q * size - 1e-9))) if size else None


def verify(document):
    """Check what the page says of a document, and return what it leaves on trust; raise `Wrong` where it fails."""
    certificate, tapes = document["certificate"], tapes_of(document)
    judge = Judge(certificate, tapes)
    arms, claims = judge.arms, certificate["claims"]
    check(certificate["digest"] == digest_of(arms, tapes), "digest")
    check(document["pulls"]["arms"] == {arm: len(tapes[arm]) for arm in arms}, "pulls")
    rule = certificate["rule"]
    last = dict.fromkeys(arms, 0)
    for claim in claims:
        counts = judge.counts(claim)
        check(all(last[a] <= counts[a] <= len(tapes[a]) for a in arms), "counts")
        if certificate["design"] == "fixed" or (certificate["origin"] or {}).get("by") == "analyze":
            last = {arm: len(tapes[arm]) for arm in arms}
            check(counts == last, "counts")
        entered = certificate["entries"][: claim["entered"]]
        followed = dict.fromkeys(arms, 0)
        for e in entered:
            check(followed[e["arm"]] <= e["since"] <= min(e["until"], counts[e["arm"]]), "since")
            followed[e["arm"]] = e["until"]
        check(len(entered) == claim["entered"], "entries")
        last = counts
        if claim["bounds"] is not None:
            check(rule is None and claim["bounds"][0] <= claim["bounds"][1], "bounds")
            continue
        check(rule == judge.rule(), "rule")
        found = judge.evidence(claim, rule)
        check(found >= judge.log_threshold(rule), f"claim against {claim['arm']}")
        accuracy = 1e-6 if not judge.shares else 1e-3  # of a least over a grid
        check(close(claim["log_evidence"], found, accuracy), f"log_evidence of {claim['arm']}: {found}")
    if rule is not None:
        check(close(certificate["log_threshold"], judge.log_threshold(rule)), "log_threshold")
    check_decision(document, judge)
    values = document["target"] == "quantile" and document["status"] != "doubtful"  # of shares: extensions 1.4
    for arm in document["arms"] if values else ():
        ends = (x if math.isfinite(x) else None for x in judge.interval(arm["name"]))
        for key, mine in zip(("low", "high", "observed"), (*ends, judge.observed(arm["name"])), strict=True):
            same = mine == arm[key] or (None not in (mine, arm[key]) and close(mine, arm[key]))
            check(same, f"{key} of {arm['name']}")
    early = any(judge.counts(claim) != {a: len(tapes[a]) for a in arms} for claim in claims)
    who = certificate["entries"] and len(arms) > 2
    bounds = any(claim["bounds"] is not None for claim in claims)
    return ["bounds"] if bounds else ["dates"] * bool(early) + ["who led when"] * bool(who)


def check_decision(document, judge):
    certificate, best, status = document["certificate"], document["best"], document["status"]
    outright = {claim["arm"] for claim in certificate["claims"] if not claim["tolerant"]}
    tolerant = {claim["arm"] for claim in certificate["claims"] if claim["tolerant"] and claim["leader"] == best}
    check((certificate["best"], certificate["status"]) == (best, status), "best")
    check((best is not None) == (status in ("certified", "separated", "tolerable")), "status")
    if best is None:
        check(status == "doubtful" or set(judge.arms) - set(document["candidates"]) <= outright, "candidates")
        return
    check(best not in outright | tolerant, "best is rejected")
    check(outright | tolerant == set(judge.arms) - {best}, "not every arm is judged")
    check(best in document["candidates"], "candidates")
    if certificate["rule"] is not None and judge.problem["handicap"] is None:
        declared = judge.problem["contamination"] is not None
        check(status == ("tolerable" if tolerant else "certified" if declared else "separated"), "status")
        check(bool(tolerant) or {*document["ties"], best} == set(document["candidates"]), "candidates")
