import { CONSTITUENTS, argument, speed } from "./constituents.js";
import type { Station } from "./station.js";

interface Wave {
  amplitude: number;
  /** Radians an hour. */
  speed: number;
  /** Radians at the origin of the curve. */
  phase: number;
}

const RADIANS = Math.PI / 180;

/** The height of the tide at a station, as a function of hours since an origin. */
export class Curve {
  readonly origin: Date;
  readonly #mean: number;
  readonly #waves: Wave[] = [];

  constructor(station: Station, origin: Date) {
    this.origin = origin;
    this.#mean = station.mean;
    for (const [name, [amplitude, lag]] of Object.entries(station.constants)) {
      const constituent = CONSTITUENTS.get(name);
      if (constituent) {
        const phase = (argument(constituent, origin) - lag) * RADIANS;
        this.#waves.push({ amplitude, speed: speed(constituent) * RADIANS, phase });
      }
    }
  }

  height(hours: number): number {
    return this.#waves.reduce(
      (sum, wave) => sum + wave.amplitude * Math.cos(wave.speed * hours + wave.phase),
      this.#mean,
    );
  }

  /** How fast the height changes, in metres an hour. */
  slope(hours: number): number {
    return this.#waves.reduce(
      (sum, wave) => sum - wave.amplitude * wave.speed * Math.sin(wave.speed * hours + wave.phase),
      0,
    );
  }

  time(hours: number): Date {
    return new Date(this.origin.getTime() + Math.round(hours * 3_600_000));
  }
}
