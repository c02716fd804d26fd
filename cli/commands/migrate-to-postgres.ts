import type { Command } from 'commander'
import type { HostMove, HostMoveStep } from '../../src/host/host.ts'
import type { Context, RunCommand } from '../context.ts'
import { examples } from '../help.ts'
import { addHostFlags, asCliError, type HostFlags } from '../host/commands.ts'
import { loadMoveConfig } from '../host/config.ts'
import { formatFacts } from '../terminal/text.ts'

type MoveFlags = HostFlags & { dryRun?: boolean; restart?: boolean }

/** Without a terminal, progress is a line every so often. */
const lineIntervalMs = 10_000
const barIntervalMs = 200
const barColumns = 30

/** Registers `otpd migrate to-postgres`. */
export function addMoveCommand(migrate: Command, runCommand: RunCommand) {
  addHostFlags(
    migrate
      .command('to-postgres')
      .description('move a data directory to the PostgreSQL database in OTPD_DATABASE_URL'),
  )
    .option('--dry-run', 'check everything and count the rows, and change nothing')
    .option('--restart', 'begin again after a move that was interrupted')
    .addHelpText('after', examples('otpd migrate to-postgres --dry-run', 'otpd migrate to-postgres'))
    .action((options: MoveFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const { config, target } = await loadMoveConfig(options)
        const { moveDataDir } = await import('../../src/server/bundle.ts')
        const progress = createProgress(context)
        const result = await moveDataDir(
          { config, target, warn: output.warn },
          {
            dryRun: options.dryRun === true,
            restart: options.restart === true,
            onStep: progress.show,
          },
        ).catch((error: unknown) => {
          progress.end()
          throw asCliError(error)
        })
        progress.end()
        output.printResult(JSON.stringify({ data: result }), () => formatResult(context, result))
        if (result.outcome === 'checked') output.suggestNext('otpd migrate to-postgres')
        else {
          output.note(
            `The data directory serves no more. Keep its master key: every node needs it (OTPD_MASTER_KEY_FILE).
Backups of SQLite hold the data of today, and erased people come back with them: delete them when you need them no more.`,
          )
          output.suggestNext('otpd serve')
        }
      }),
    )
}

function formatResult({ output: { paint } }: Context, { outcome, tables }: HostMove): string {
  const tick = paint.green('✓')
  if (outcome === 'finished') return `${tick} The interrupted move was complete, and is finished now`
  const filled = tables.filter(({ rows }) => rows > 0)
  return [
    outcome === 'checked'
      ? `${tick} The data directory can be moved; nothing was changed`
      : `${tick} Moved to PostgreSQL, and compared`,
    formatFacts(
      filled.map(({ name, rows }) => [name, `${rows} rows`]),
      paint,
    ),
  ].join('\n')
}

/** Shows progress on stderr: a bar on a terminal, otherwise a line every 10 s; with --json an object for each step. */
function createProgress({ io, output }: Context) {
  const { json } = output
  const isBar = io.stderrIsTerminal && !json
  let shownAt = io.now()
  let lastStep = ''
  let isDrawn = false

  return {
    show(step: HostMoveStep) {
      const name = stepName(step)
      if (json) {
        // The rows of a table are one step; `compare` tells how many they were.
        if (name !== lastStep) io.writeError(`${JSON.stringify(step)}\n`)
      } else if (io.now() - shownAt >= (isBar ? barIntervalMs : lineIntervalMs)) {
        shownAt = io.now()
        isDrawn = isBar
        if (isBar) io.writeError(`\r\u001b[K${drawBar(step)}${describeStep(step)}`)
        else output.note(describeStep(step))
      }
      lastStep = name
    },
    end() {
      if (isDrawn) io.writeError('\r\u001b[K')
    },
  }
}

const stepName = (step: HostMoveStep) => `${step.step} ${'table' in step ? step.table : ''}`

function drawBar(step: HostMoveStep): string {
  if (step.step !== 'copy' || step.rowsTotal === 0) return ''
  const filled = Math.round((barColumns * step.rows) / step.rowsTotal)
  return `[${'#'.repeat(filled)}${'.'.repeat(barColumns - filled)}] `
}

function describeStep(step: HostMoveStep): string {
  switch (step.step) {
    case 'copy': {
      const percent = Math.floor((100 * step.rows) / Math.max(1, step.rowsTotal))
      return `${percent} %: ${step.rows} of ${step.rowsTotal} rows sent (${step.table})`
    }
    case 'compare':
      return `compared ${step.table}: ${step.rows} rows`
    case 'index':
      return `index ${step.done + 1} of ${step.total}`
    default:
      return step.step
  }
}
