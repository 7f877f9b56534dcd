import { CONSTITUENTS } from "./constituents.js";

/** A harbour: its mean level and, by constituent, amplitude (m) and lag (degrees). */
export interface Station {
  readonly name: string;
  readonly mean: number;
  readonly constants: Readonly<Record<string, readonly [amplitude: number, lag: number]>>;
}

/** Read a station from JSON, refusing what a prediction could not use. */
export function parseStation(text: string): Station {
  const { name, mean = 0, constants } = JSON.parse(text) as Partial<Station>;
  if (typeof name !== "string" || typeof mean !== "number" || !constants) {
    throw new Error("a station needs a name, a mean level and constants");
  }
  for (const [key, pair] of Object.entries<unknown>(constants)) {
    if (!CONSTITUENTS.has(key)) {
      throw new Error(`unknown constituent ${key}`);
    }
    if (!Array.isArray(pair) || pair.length !== 2 || !pair.every(Number.isFinite)) {
      throw new Error(`${key} needs an amplitude and a lag`);
    }
  }
  return { name, mean, constants };
}
