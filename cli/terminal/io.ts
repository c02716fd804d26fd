import type { ProgressStep } from '../../src/shared/progress.ts'
import type { ProgressView } from './progress-view.ts'

/** The process as a command sees it: environment, streams, terminal and clock. Tests pass a fake. */
export type Io = {
  env: Record<string, string | undefined>
  /** Directory that relative paths are resolved against. */
  workingDirectory: string
  homeDirectory: string
  stdinIsTerminal: boolean
  stdoutIsTerminal: boolean
  stderrIsTerminal: boolean
  /** Current width of the terminal on stdout; null if unknown. */
  columns?(): number | null
  writeOut(text: string): void
  writeError(text: string): void
  /** Reads standard input to its end. */
  readInput(): Promise<string>
  /** Prompts for one line on the terminal, without echo if `secret`. Null if the user gave up. */
  askLine(question: string, options: { secret: boolean }): Promise<string | null>
  /** Opens a page in the user's browser. False if there is no browser. */
  openPage?(url: string): boolean
  /** Draws the progress of long work on stderr, also while this thread is busy. */
  drawProgress?(view: ProgressView): { show(step: ProgressStep): void; end(): void }
  now(): number
  sleep(durationMs: number): Promise<void>
  /** Handles Ctrl+C and SIGTERM instead of the default action. Returns a function that restores the default. */
  onInterrupt?(handler: (signal: 'SIGINT' | 'SIGTERM') => void): () => void
}

/** Whether the terminal can show more than ASCII, by its locale variables in the order of POSIX (§8.2). */
export const isUtf8Locale = ({ LC_ALL, LC_CTYPE, LANG }: Io['env']) =>
  /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '')
