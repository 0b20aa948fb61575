/**
 * Makes a failing run smaller: of two lists of choices that fail, the better one is shorter, or has
 * more zeros, or lower numbers. What it finds can't be made better by one more of its steps, unless
 * the budget ended first.
 *
 * @param fails runs the choices; it must give the same for the same list
 * @param budget runs at most
 */
export const shrink = async (
  choices: readonly number[],
  fails: (choices: readonly number[]) => Promise<boolean>,
  budget: number,
): Promise<readonly number[]> => {
  let best = withoutPlainEnd(choices);
  let runs = 0;

  const improves = async (candidate: readonly number[]): Promise<boolean> => {
    const shorter = withoutPlainEnd(candidate);
    if (runs >= budget || !isBetter(shorter, best)) return false;
    runs++;
    if (!(await fails(shorter))) return false;
    best = shorter;
    return true;
  };

  for (let before: readonly number[] | undefined; before !== best && runs < budget; ) {
    before = best;
    for (const change of [cut, drop, zero]) {
      for (let size = best.length; size >= 1; size = Math.floor(size / 2)) {
        for (let end = best.length; end > 0; end -= size) {
          // After a success the same place may give more.
          while (await improves(change(best, Math.max(0, end - size), end)));
        }
      }
    }
    for (let at = best.length - 1; at >= 0; at--) {
      for (let value = 0; value < (best[at] ?? 0); value++) {
        if (await improves(best.with(at, value))) break;
      }
    }
  }
  return best;
};

type Shrinking = (choices: readonly number[], from: number, to: number) => readonly number[];

const cut: Shrinking = (choices, from) => choices.slice(0, from);

const drop: Shrinking = (choices, from, to) => choices.toSpliced(from, to - from);

const zero: Shrinking = (choices, from, to) =>
  choices.map((choice, at) => (at >= from && at < to ? 0 : choice));

/** Behind the end of a list every choice is 0 anyway. */
const withoutPlainEnd = (choices: readonly number[]): readonly number[] =>
  choices.slice(0, choices.findLastIndex((choice) => choice !== 0) + 1);

const isBetter = (candidate: readonly number[], best: readonly number[]): boolean => {
  if (candidate.length !== best.length) return candidate.length < best.length;
  const [zeros, bestZeros] = [candidate, best].map((list) => list.filter((it) => it === 0).length);
  if (zeros !== bestZeros) return (zeros ?? 0) > (bestZeros ?? 0);
  const [sum, bestSum] = [candidate, best].map((list) => list.reduce((a, b) => a + b, 0));
  return (sum ?? 0) < (bestSum ?? 0);
};
