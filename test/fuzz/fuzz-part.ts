/** Options of all parts. */
export type FuzzOptions = {
  /** Runs of each property and mutations of each corpus. */
  runs: number
  /** Cases per operation of the OpenAPI document. */
  cases: number
  /** Rounds of each race. */
  rounds: number
  /** Duration of attacks that run for a time. */
  seconds: number
  /** Attacks that a search for worse ones tries. */
  search: number
  seed: number
  /** Whether to run in a minute or two. */
  isShort: boolean
}

export type FuzzPart = {
  /** Name for `--only`. */
  name: string
  title: string
  /** Returns the reason if this part cannot run on this machine. */
  skipReason?(): string | undefined
  /**
   * Runs the part and prints one line with figures per trial.
   *
   * @returns the findings, each with everything needed to reproduce it
   */
  run(options: FuzzOptions, print: (line: string) => void): Promise<string[]>
}

export const formatElapsed = (fromMs: number) => `${((performance.now() - fromMs) / 1000).toFixed(1)} s`

/** Describes an error and its cause for people. */
export const describeError = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message) : Bun.inspect(error)
