/**
 * A constituent's argument is a sum of four angles, each a whole number of times:
 * T, the hour angle of the mean sun; s and h, the mean longitudes of the moon and
 * the sun; p, the longitude of the moon's perigee. A constant offset is added.
 */
export interface Constituent {
  readonly multiples: readonly [T: number, s: number, h: number, p: number];
  readonly offset: number;
}

export const CONSTITUENTS: ReadonlyMap<string, Constituent> = new Map([
  constituent("M2", 2, -2, 2, 0, 0),
  constituent("S2", 2, 0, 0, 0, 0),
  constituent("N2", 2, -3, 2, 1, 0),
  constituent("K2", 2, 0, 2, 0, 0),
  constituent("K1", 1, 0, 1, 0, -90),
  constituent("O1", 1, -2, 1, 0, 90),
  constituent("P1", 1, 0, -1, 0, 90),
  constituent("M4", 4, -4, 4, 0, 0),
]);

const EPOCH = Date.UTC(2000, 0, 1, 12);
const HOURS_PER_CENTURY = 36525 * 24;

/** T, s, h and p at the epoch, in degrees, and how fast each grows an hour. */
const ANGLES = [
  { start: 0, rate: 15 },
  { start: 218.3165, rate: 481267.8812 / HOURS_PER_CENTURY },
  { start: 280.4665, rate: 36000.7698 / HOURS_PER_CENTURY },
  { start: 83.3532, rate: 4069.0137 / HOURS_PER_CENTURY },
];

/** Degrees an hour. */
export function speed({ multiples }: Constituent): number {
  return multiples.reduce((sum, times, i) => sum + times * ANGLES[i].rate, 0);
}

/** The equilibrium argument at Greenwich, in degrees from 0 to 360. */
export function argument(constituent: Constituent, time: Date): number {
  const hours = (time.getTime() - EPOCH) / 3_600_000;
  const start = constituent.multiples.reduce((sum, times, i) => sum + times * ANGLES[i].start, 0);
  const degrees = start + constituent.offset + speed(constituent) * hours;
  return ((degrees % 360) + 360) % 360;
}

function constituent(
  name: string,
  T: number,
  s: number,
  h: number,
  p: number,
  offset: number,
): [string, Constituent] {
  return [name, { multiples: [T, s, h, p], offset }];
}
