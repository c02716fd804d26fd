/** Result of one trial of a fault. */
export type Finding = {
  /** Describes the fault. */
  scenario: string
  /** Describes what must hold despite the fault. */
  guarantee: string
  /** Counts and durations for the report. */
  figures?: Record<string, number | string>
  /** One sentence per violation of the guarantee. */
  violations: string[]
}

/** Parameters of a run of a family. */
export type Trial = {
  /** Seed that reproduces the run, apart from the machine's timing. */
  seed: number
  /** Returns the next number in [0, 1) of the seed's sequence. */
  random: () => number
  /** Returns how often to try something, by `counts` and the command line. */
  count: (name: string) => number
  /** True for the short form, which checks every change. */
  short: boolean
  /** Relaxes a time limit: ten times as long in the short form, which shares the machine with other checks. */
  allowMs: (ms: number) => number
  /** Empty folder, removed after the run. */
  folder: string
  report: (finding: Finding) => void
}

/** A kind of fault, and the program that tries it on the compiled binary. */
export type FaultFamily = {
  /** Name for `--only`. */
  name: string
  description: string
  /** Runs in its short form unless `--only` names it. */
  takesLong?: true
  /** Counts for the full and the short form. Each is an option: `kills` is `--kills N`. */
  counts?: Record<string, { full: number; short: number }>
  /** Runs the trials and reports each finding at once. An exception counts as a violation. */
  run: (trial: Trial) => Promise<void>
}
