import { createColors } from 'picocolors'
import { CliError, exitCodes } from './errors.ts'
import type { Io } from './io.ts'
import { localTime, printable, relativeTime, formatTable, type Paint } from './text.ts'

export type OutputFlags = { json?: boolean; quiet?: boolean; color?: boolean }

/**
 * The two streams. stdout holds the answer and nothing else, so that it can be piped; hints, notes and errors are
 * on stderr. What is printed depends on flags alone, never on who is watching; only what a person's eye needs (colour,
 * tables that fit, times in words) looks at the terminal.
 */
export type Output = ReturnType<typeof createOutput>

export function createOutput(io: Io, flags: OutputFlags) {
  const json = flags.json === true
  const quiet = json || flags.quiet === true
  const paint = createColors(wantsColor(io, flags, io.stdoutIsTerminal))
  const paintError = createColors(wantsColor(io, flags, io.stderrIsTerminal))
  const columns = () => (io.stdoutIsTerminal ? (io.columns?.() ?? null) : null)

  return {
    json,
    paint,
    paintError,
    /** As wide as the terminal may be filled; null where there is none. */
    columns,
    /** A table that fits the terminal; whole where there is none. */
    formatTable: (headings: string[], rows: string[][]) => formatTable(headings, rows, paint, columns()),
    /** When something is: in words on a terminal, in local time elsewhere. */
    formatTime: (iso: string) => (io.stdoutIsTerminal ? relativeTime(iso, io.now()) : localTime(iso)),
    /** The answer: the API's own body with --json, otherwise the text. */
    printResult(body: string, text: () => string) {
      io.writeOut(withNewline(json ? body : text()))
    },
    /** Something a person wants to know that is not the answer. Left out with --quiet and --json. */
    note(text: string) {
      if (!quiet) io.writeError(withNewline(text))
    },
    /** The command to type next. */
    suggestNext(...commands: string[]) {
      if (quiet) return
      const lines = commands.map((command, index) => `${index === 0 ? 'Next:' : '     '} ${command}`)
      io.writeError(paintError.dim(lines.join('\n')) + '\n')
    },
    /** A warning is kept with --quiet: it is about something that may go wrong. Left out with --json. */
    warn(text: string) {
      if (!json) io.writeError(`${paintError.yellow('Warning:')} ${withNewline(text)}`)
    },
    printError(error: unknown) {
      io.writeError(withNewline(json ? errorJson(error) : errorText(error, paintError)))
    },
  }
}

const withNewline = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)

/** https://no-color.org and the usual company; each stream is judged by itself. */
function wantsColor(io: Io, flags: OutputFlags, isTerminal: boolean) {
  if (flags.color === false || io.env.NO_COLOR) return false
  if (io.env.FORCE_COLOR) return io.env.FORCE_COLOR !== '0'
  return isTerminal && io.env.TERM !== 'dumb'
}

function errorText(error: unknown, paint: Paint) {
  const title = paint.bold(paint.red('Error:'))
  if (error instanceof CliError)
    return [
      `${title} ${printable(error.message)}`,
      ...error.hints.map((hint) => `  ${printable(hint)}`),
    ].join('\n')
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return `${title} this is a bug in otpd, please report it with the lines below.\n${trace}`
}

function errorJson(error: unknown) {
  if (!(error instanceof CliError)) {
    const message = error instanceof Error ? error.message : String(error)
    return JSON.stringify({ error: { code: 'INTERNAL', message } })
  }
  if (error.body !== undefined) return error.body
  const { code, message, hints } = error
  return JSON.stringify({ error: { code, message, ...(hints.length > 0 && { hint: hints.join('\n') }) } })
}

export const exitCodeForError = (error: unknown) =>
  error instanceof CliError ? error.exitCode : exitCodes.bug
