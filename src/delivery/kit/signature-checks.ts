import { timingSafeEqual } from 'node:crypto'

/** Takes as long for a signature that is nearly right as for one that is not. */
export const timingSafeEqualBytes = (actual: Uint8Array, expected: Uint8Array): boolean =>
  actual.byteLength === expected.byteLength && timingSafeEqual(actual, expected)

/** Whether a time in whole seconds, as a header gives it, is no further from now than that. */
export const isWithinTolerance = (seconds: string, nowMs: number, toleranceSeconds: number): boolean =>
  /^\d{1,12}$/.test(seconds) && Math.abs(Number(seconds) - nowMs / 1000) <= toleranceSeconds
