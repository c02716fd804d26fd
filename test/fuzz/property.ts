import * as fc from 'fast-check'
import { describeError } from './fuzz-part.ts'

/** Property that always holds. A unit test checks it briefly, `npm run fuzz` at length. */
export type FuzzProperty = {
  name: string
  /** Number of runs in a unit test. */
  shortRuns: number
  /** Checks the property. @returns how to reproduce a failure, or undefined if there was none */
  check(runs: number, seed?: number): Promise<string | undefined>
}

type OpenProperty<T> = { property: fc.IRawProperty<T>; close?(): Promise<unknown> }

/** Defines a property. @param open creates the state that all runs share */
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
