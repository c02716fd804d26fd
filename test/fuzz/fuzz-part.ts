/** What all parts are asked with. */
export type FuzzOptions = {
  /** Of each property, and of each corpus that is mutated. */
  runs: number
  /** Of each operation of the OpenAPI document. */
  cases: number
  /** Of each race. */
  rounds: number
  seed: number
}

export type FuzzPart = {
  /** As `--only` takes it. */
  name: string
  title: string
  /** Why this part cannot run here, if it cannot. */
  skipReason?(): string | undefined
  /**
   * Prints a line for each thing that was tried, with its figures.
   *
   * @returns the findings: each a text with all that it takes to see it again
   */
  run(options: FuzzOptions, print: (line: string) => void): Promise<string[]>
}

export const formatElapsed = (fromMs: number) => `${((performance.now() - fromMs) / 1000).toFixed(1)} s`

/** What went wrong, with its cause, for people. */
export const describeError = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message) : Bun.inspect(error)

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
