import * as fc from 'fast-check'
import { describeError } from './fuzz-part.ts'

/** What always holds. A unit test runs it in short, `npm run fuzz` at length. */
export type FuzzProperty = {
  name: string
  /** How often a unit test runs it. */
  shortRuns: number
  /** @returns what to see a failure again with; undefined where there was none */
  check(runs: number, seed?: number): Promise<string | undefined>
}

type OpenProperty<T> = { property: fc.IRawProperty<T>; close?(): Promise<unknown> }

/** @param open makes what all runs share */
export function defineProperty<T>(
  name: string,
  shortRuns: number,
  open: () => OpenProperty<T> | Promise<OpenProperty<T>>,
): FuzzProperty {
  return {
    name,
    shortRuns,
    async check(runs, seed) {
      const opened = await open()
      try {
        const details = await fc.check(opened.property, {
          numRuns: runs,
          ...(seed !== undefined && { seed }),
        })
        const message = await fc.asyncDefaultReportMessage(details)
        return message && `${message}\n${describeError(details.errorInstance)}`
      } finally {
        await opened.close?.()
      }
    },
  }
}
