import { createColors } from 'picocolors'
import { CliError, exitCodes } from './errors.ts'
import type { Io } from './io.ts'
import { completeCommands, type HostPlace } from '../../src/shared/suggested-commands.ts'
import { formatTable, type Heading } from './table.ts'
import {
  formatFacts,
  localTime,
  printable,
  recentTime,
  relativeTime,
  terminalJson,
  terminalText,
  timeZone,
  zonedTime,
  type Fact,
  type Paint,
} from './text.ts'

type OutputIo = Pick<
  Io,
  'env' | 'stdoutIsTerminal' | 'stderrIsTerminal' | 'columns' | 'now' | 'writeOut' | 'writeError'
>

type OutputFlags = HostPlace & { json?: boolean; quiet?: boolean; color?: boolean }

/**
 * The two output streams. stdout holds only the result, so that it can be piped; hints, notes and errors go to
 * stderr. Flags alone decide what is printed; only presentation (colour, width of tables, relative times) depends on
 * the terminal.
 */
export type Output = ReturnType<typeof createOutput>

/** Makes the output of one command from its flags and the process's streams. */
export function createOutput(io: OutputIo, flags: OutputFlags) {
  const json = flags.json === true
  const quiet = json || flags.quiet === true
  const paint = createColors(wantsColor(io, flags, io.stdoutIsTerminal))
  const paintError = createColors(wantsColor(io, flags, io.stderrIsTerminal))
  const complete = (text: string) => completeCommands(text, flags)
  const writeText = (text: string) => io.writeOut(io.stdoutIsTerminal ? terminalText(text) : text)
  const writeNote = (text: string) => io.writeError(io.stderrIsTerminal ? terminalText(text) : text)
  const columns = () => (io.stdoutIsTerminal ? (io.columns?.() ?? null) : null)

  function printResult(body: string, text: () => string, ids?: readonly string[]) {
    if (json) io.writeOut(withNewline(forTerminal(body, io.stdoutIsTerminal)))
    else if (ids === undefined || !quiet) writeText(withNewline(text()))
    else for (const id of ids) io.writeOut(`${printable(id)}\n`)
  }

  return {
    json,
    /** Completes the commands in a text, so that they work when pasted. The functions below do it, `printResult` does not. */
    complete,
    /** Whether people read the result; names and other details are only for them. */
    isForPeople: !quiet,
    paint,
    paintError,
    /** Width of the terminal in columns; null without a terminal. */
    columns,
    /** Formats the line that says what was done: `✓ Project shop deleted`. */
    done: (text: string) => `${paint.green('✓')} ${text}`,
    /** Formats one fact per line; facts without a value are left out. */
    formatFacts: (facts: Fact[]) => formatFacts(facts, paint),
    /** Formats a title with facts below it. */
    details: (title: string, facts: Fact[]) => [title, formatFacts(facts, paint)].filter(Boolean).join('\n'),
    /** Formats a table to fit the terminal, or at full width without one. */
    formatTable: (headings: Heading[], rows: string[][]) => formatTable(headings, rows, paint, columns()),
    /** Formats a time relative to now on a terminal, as local time with its zone elsewhere. */
    formatTime: (iso: string) => (io.stdoutIsTerminal ? relativeTime(iso, io.now()) : zonedTime(iso)),
    /** Formats a time as `formatTime` does, for a column whose heading names the zone. */
    columnTime: (iso: string) => (io.stdoutIsTerminal ? relativeTime(iso, io.now()) : localTime(iso)),
    /** Formats the time of an entry in a list: without the date if it is today. */
    clockTime: (iso: string) => (io.stdoutIsTerminal ? recentTime(iso, io.now()) : localTime(iso)),
    /** Adds the time zone to the heading of times that `clockTime` prints. */
    clockHeading: (title: string) => `${title} (${timeZone(io.now())})`,
    /** Adds the time zone to the heading of times that `columnTime` prints with their date. */
    timeHeading: (title: string) => (io.stdoutIsTerminal ? title : `${title} (${timeZone(io.now())})`),
    /**
     * Prints the result: the API's own body with --json, the bare ids with --quiet if the result has any, otherwise
     * the text.
     *
     * @param ids ids of the resources, for scripts
     */
    printResult,
    /** Prints a result that no server sent, as `printResult` does: with --json in the shape of the API. */
    printData: (data: unknown, text: () => string, ids?: readonly string[]) =>
      printResult(JSON.stringify({ data }), text, ids),
    /** Prints a note for people. Left out with --quiet and --json. */
    note(text: string) {
      if (!quiet) writeNote(withNewline(complete(text)))
    },
    /** Prints the commands to type next. Left out with --quiet and --json. */
    suggestNext(...commands: string[]) {
      if (quiet) return
      const lines = commands.map(
        (command, index) => `${index === 0 ? 'Next:' : '     '} ${complete(command)}`,
      )
      writeNote(paintError.dim(lines.join('\n')) + '\n')
    },
    /** Prints a warning, even with --quiet. Left out with --json. */
    warn(text: string) {
      if (!json) writeNote(`${paintError.yellow('Warning:')} ${withNewline(complete(text))}`)
    },
    /** Prints an error: the API's own body or JSON of the same shape with --json, otherwise text and hints. */
    printError(error: unknown) {
      writeNote(
        withNewline(
          json
            ? forTerminal(errorJson(error, complete), io.stderrIsTerminal)
            : errorText(error, paintError, complete),
        ),
      )
    },
  }
}

/** Into a pipe, JSON goes unchanged, byte for byte. */
const forTerminal = (json: string, isTerminal: boolean) => (isTerminal ? terminalJson(json) : json)

const withNewline = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)

/** Decides on colour for one stream: --no-color, NO_COLOR (https://no-color.org), FORCE_COLOR, then the terminal. */
export function wantsColor({ env }: Pick<Io, 'env'>, flags: OutputFlags, isTerminal: boolean): boolean {
  if (flags.color === false || env.NO_COLOR) return false
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0'
  return isTerminal && env.TERM !== 'dumb'
}

type Complete = (text: string) => string

function errorText(error: unknown, paint: Paint, complete: Complete) {
  const title = paint.bold(paint.red('Error:'))
  if (error instanceof CliError)
    return [
      `${title} ${printable(error.message)}`,
      ...error.hints.map((hint) => `  ${complete(printable(hint))}`),
    ].join('\n')
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return `${title} this is a bug in otpd; please report it with the lines below.\n${trace}`
}

function errorJson(error: unknown, complete: Complete) {
  if (!(error instanceof CliError)) {
    const message = error instanceof Error ? error.message : String(error)
    return JSON.stringify({ error: { code: 'INTERNAL', message } })
  }
  if (error.body !== undefined) return error.body
  const { code, message, hints } = error
  return JSON.stringify({
    error: { code, message, ...(hints.length > 0 && { hint: complete(hints.join('\n')) }) },
  })
}

/** Maps any error to an exit code; an unexpected one is a bug. */
export const exitCodeForError = (error: unknown) =>
  error instanceof CliError ? error.exitCode : exitCodes.bug
