import type { Station, TurningPoint } from "@tideline/core";

/** One line a day: the times (UTC) and heights of its high and low waters. */
export function renderTable(station: Station, points: readonly TurningPoint[]): string {
  const days = new Map<string, string[]>();
  for (const point of points) {
    const day = point.time.toISOString().slice(0, 10);
    days.set(day, [...(days.get(day) ?? []), cell(point)]);
  }
  const lines = [...days].map(([day, cells]) => `${day}  ${cells.join("  ")}`);
  return [station.name, ...lines].join("\n");
}

function cell({ kind, time, height }: TurningPoint): string {
  const mark = kind === "high" ? "H" : "L";
  return `${time.toISOString().slice(11, 16)} ${mark} ${height.toFixed(2).padStart(5)}`;
}
