/** What one trial of a fault came to. */
export type Finding = {
  /** What was done to the server, in words. */
  scenario: string
  /** What must hold all the same. */
  guarantee: string
  /** Counts and times that the reader wants to see. */
  figures?: Record<string, number | string>
  /** Each break of the promise, in words; none where it was kept. */
  violations: string[]
}

/** What a family is run with. */
export type Trial = {
  /** Repeats the run, as far as the machine's timing does. */
  seed: number
  /** From the seed: a number from 0 up to, not including, 1. */
  random: () => number
  /** How often this family tries something, as its `counts` and the command line have it. */
  count: (name: string) => number
  /** The short form, for checks of every change. */
  short: boolean
  /** How long something may take that takes so long at most: ten times that in the short form, which runs beside others. */
  allowMs: (ms: number) => number
  /** An empty folder, removed after the family. */
  folder: string
  report: (finding: Finding) => void
}

/** One kind of fault, and the program that tries it on the compiled binary. */
export type FaultFamily = {
  /** A word for `--only`. */
  name: string
  description: string
  /** Only its short form is run where nobody asks for it by name. */
  takesLong?: true
  /** How often things are tried in full and in the short form. Each is an option: `kills` is `--kills N`. */
  counts?: Record<string, { full: number; short: number }>
  /** Reports each finding as it is made. What it throws counts as a broken promise. */
  run: (trial: Trial) => Promise<void>
}

/** Numbers that repeat with the seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
