import type { Curve } from "./curve.js";

export interface TurningPoint {
  kind: "high" | "low";
  time: Date;
  height: number;
}

/** Hours between samples; the shortest constituent takes about six hours a turn. */
const STEP = 0.5;

/** High and low waters from the origin of a curve to some hours later. */
export function turningPoints(curve: Curve, hours: number): TurningPoint[] {
  const points: TurningPoint[] = [];
  for (let start = 0; start < hours; start += STEP) {
    const end = Math.min(start + STEP, hours);
    const rising = curve.slope(start) > 0;
    if (rising !== curve.slope(end) > 0) {
      const at = turn(curve, start, end, rising);
      const kind = rising ? "high" : "low";
      points.push({ kind, time: curve.time(at), height: curve.height(at) });
    }
  }
  return points;
}

/** Halve an interval in which the slope changes sign until it is under a second. */
function turn(curve: Curve, start: number, end: number, rising: boolean): number {
  while (end - start > 1 / 3600) {
    const middle = (start + end) / 2;
    if (curve.slope(middle) > 0 === rising) {
      start = middle;
    } else {
      end = middle;
    }
  }
  return (start + end) / 2;
}
