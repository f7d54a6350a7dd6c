"""How fast svcq is: each figure a ratio of two measurements made side by side in one run.

    ./dev bench                     everything
    ./dev bench flat --quick        one figure, with smaller numbers
    ./dev bench --json FILE         for a machine to read
    ./dev bench flat --plots DIR    the curve, as a picture

It exits with 1 when a figure is short of its target.
"""
