import assert from "node:assert/strict";
import { test } from "node:test";

import { CONSTITUENTS, Curve, argument, parseStation, speed, turningPoints } from "../src/index.js";
import type { Constituent, Station } from "../src/index.js";

function named(name: string): Constituent {
  const found = CONSTITUENTS.get(name);
  assert.ok(found);
  return found;
}

function near(actual: number, expected: number, tolerance: number): void {
  assert.ok(Math.abs(actual - expected) <= tolerance, `${actual} is not near ${expected}`);
}

test("speeds agree with published ones", () => {
  near(speed(named("M2")), 28.9841042, 1e-6);
  near(speed(named("K1")), 15.0410686, 1e-6);
  near(speed(named("N2")), 28.4397295, 1e-6);
});

test("moon and sun pull together at a new moon", () => {
  const newMoon = new Date("2024-04-08T18:21:00Z");
  const apart = argument(named("M2"), newMoon) - argument(named("S2"), newMoon);
  near(((apart + 540) % 360) - 180, 0, 15);
});

test("a purely solar tide is high at midnight and at noon", () => {
  const station: Station = { name: "Solar", mean: 1, constants: { S2: [0.5, 0] } };
  const curve = new Curve(station, new Date("2024-03-10T01:00:00Z"));
  const points = turningPoints(curve, 24);
  assert.deepEqual(points.map((point) => point.kind), ["low", "high", "low", "high"]);
  near(points[1].time.getTime(), Date.UTC(2024, 2, 10, 12), 1000);
  near(points[1].height, 1.5, 1e-6);
  near(points[0].height, 0.5, 1e-6);
});

test("stations are checked", () => {
  const text = '{ "name": "A", "mean": 2, "constants": { "M2": [1, 30] } }';
  assert.deepEqual(parseStation(text).constants, { M2: [1, 30] });
  assert.throws(() => parseStation(text.replace("M2", "X9")), /unknown constituent X9/);
  assert.throws(() => parseStation(text.replace("30", "null")), /M2 needs/);
  assert.throws(() => parseStation("{}"), /needs a name/);
});
