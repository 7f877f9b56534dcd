import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { Curve, parseStation, turningPoints } from "@tideline/core";
import { renderChart, renderTable } from "@tideline/render";

const USAGE = "usage: tideline STATION.json [--from YYYY-MM-DD] [--days N] [--chart]";

function run(args: string[]): string {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      from: { type: "string" },
      days: { type: "string", default: "1" },
      chart: { type: "boolean", default: false },
    },
  });
  const day = values.from ?? new Date().toISOString().slice(0, 10);
  const origin = new Date(`${day}T00:00:00Z`);
  const hours = 24 * Number(values.days);
  if (positionals.length !== 1 || Number.isNaN(origin.getTime()) || !(hours > 0)) {
    throw new Error(USAGE);
  }
  const station = parseStation(readFileSync(positionals[0], "utf8"));
  const curve = new Curve(station, origin);
  const table = renderTable(station, turningPoints(curve, hours));
  return values.chart ? `${table}\n\n${renderChart(curve, hours)}` : table;
}

try {
  console.log(run(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
