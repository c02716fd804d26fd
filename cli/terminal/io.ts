/** Everything a command sees of the process it runs in, so that tests can run one without being one. */
export type Io = {
  env: Record<string, string | undefined>
  /** The directory that relative paths are meant from. */
  workingDirectory: string
  homeDirectory: string
  stdinIsTerminal: boolean
  stdoutIsTerminal: boolean
  stderrIsTerminal: boolean
  /** How wide the terminal is now that stdout is; null where nobody knows. */
  columns?(): number | null
  writeOut(text: string): void
  writeError(text: string): void
  /** All of standard input, until it ends. */
  readInput(): Promise<string>
  /** One line typed on the terminal, not shown while it is typed where `secret`; null where the user gave up. */
  askLine(question: string, options: { secret: boolean }): Promise<string | null>
  /** Shows a page in the person's browser, and says whether one was there to be asked. */
  openPage?(url: string): boolean
  now(): number
  sleep(durationMs: number): Promise<void>
  /** Takes Ctrl-C and SIGTERM over from the system; the function that it gives hands them back. */
  onInterrupt?(handler: (signal: 'SIGINT' | 'SIGTERM') => void): () => void
}

/** Whether the terminal can show more than ASCII, by its locale variables in the order of POSIX (§8.2). */
export const isUtf8Locale = ({ LC_ALL, LC_CTYPE, LANG }: Io['env']) =>
  /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '')
