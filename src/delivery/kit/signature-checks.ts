export { timingSafeEqualBytes } from '../../shared/hmac.ts'

/** Whether a timestamp header (whole seconds) is within the tolerance of now; limits replays. */
export const isWithinTolerance = (seconds: string, nowMs: number, toleranceSeconds: number): boolean =>
  /^\d{1,12}$/.test(seconds) && Math.abs(Number(seconds) - nowMs / 1000) <= toleranceSeconds
