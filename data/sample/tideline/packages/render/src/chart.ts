import type { Curve } from "@tideline/core";

const WIDTH = 48;

/** One line an hour, with a mark as far to the right as the water is high. */
export function renderChart(curve: Curve, hours: number): string {
  const heights = Array.from({ length: Math.floor(hours) + 1 }, (_, hour) => curve.height(hour));
  const low = Math.min(...heights);
  const range = Math.max(...heights) - low || 1;
  return heights
    .map((height, hour) => {
      const column = Math.round(((height - low) / range) * WIDTH);
      const clock = curve.time(hour).toISOString().slice(11, 16);
      return `${clock} ${height.toFixed(2).padStart(6)} |${" ".repeat(column)}*`;
    })
    .join("\n");
}
