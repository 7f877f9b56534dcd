export { CONSTITUENTS, argument, speed } from "./constituents.js";
export type { Constituent } from "./constituents.js";
export { Curve } from "./curve.js";
export { turningPoints } from "./extremes.js";
export type { TurningPoint } from "./extremes.js";
export { parseStation } from "./station.js";
export type { Station } from "./station.js";
