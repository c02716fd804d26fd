import { timingSafeEqual } from 'node:crypto'

/** Compares signatures in constant time, so that timing does not reveal a partial match. */
export const timingSafeEqualBytes = (actual: Uint8Array, expected: Uint8Array): boolean =>
  actual.byteLength === expected.byteLength && timingSafeEqual(actual, expected)

/** Whether a timestamp header (whole seconds) is within the tolerance of now; limits replays. */
export const isWithinTolerance = (seconds: string, nowMs: number, toleranceSeconds: number): boolean =>
  /^\d{1,12}$/.test(seconds) && Math.abs(Number(seconds) - nowMs / 1000) <= toleranceSeconds
