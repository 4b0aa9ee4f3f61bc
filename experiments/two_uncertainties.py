"""Noise and doubt: y = 3x measured ten and a thousand times, as a picture and a table.

    python -m experiments.two_uncertainties docs/images/two-uncertainties.png

The picture of `docs/tutorials/two_uncertainties.md`; it takes three minutes on two cores. The table is printed.
"""

import sys
from pathlib import Path

from experiments.uncertainties import figure
from experiments.uncertainties.models import line, network, spread

import weightscape as ws

COUNTS = (10, 30, 100, 300, 1000)


def main(path: Path, counts: tuple[int, ...] = COUNTS) -> None:
    print("| measurements | line: doubt | network: doubt | worst R̂ | noise as learned | worst R̂ |")
    print("|---|---|---|---|---|---|")
    spreads, widths, predictives = {}, {}, {}
    for count in counts:
        told, learned = (network(count, noise_is_known=is_known) for is_known in (True, False))
        spreads[count], widths[count] = spread(told), spread(learned).aleatoric
        rhats = [ws.diagnose(draws, figure.inputs()[::10]).worst_rhat for draws in (told, learned)]
        doubts = f"{line(count).epistemic:.3f} | {spreads[count].epistemic:.3f}"
        print(f"| {count:,} | {doubts} | {rhats[0]:.3f} | {widths[count]:.2f} | {rhats[1]:.3f} |", flush=True)
        if count in (counts[0], counts[-1]):
            predictives[count] = ws.predict(told, figure.inputs())
    figure.draw(predictives, spreads, widths).savefig(path, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
