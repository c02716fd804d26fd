import type { CliCommand } from './command.ts'
import type { HostMove, HostMoveStep } from '../../src/host/host.ts'
import type { Context } from '../context.ts'
import { createOutput, type Output } from '../terminal/output.ts'
import { addHostFlags, asCliError, type HostFlags } from '../host/commands.ts'
import { loadMoveConfig } from '../host/config.ts'
import { nameDataDir } from '../host/name-data-dir.ts'
import type { ProgressStep } from '../../src/shared/progress.ts'
import { confirm } from '../terminal/confirm.ts'
import { withProgress } from '../terminal/progress.ts'
import { printable } from '../terminal/text.ts'

type MoveFlags = HostFlags & { dryRun?: boolean; restart?: boolean }

/** Registers `otpd migrate to-postgres`. */
export function addMoveCommand(migrate: CliCommand) {
  addHostFlags(
    migrate
      .command('to-postgres')
      .description('move a data directory to the PostgreSQL database in OTPD_DATABASE_URL'),
  )
    .option('--dry-run', 'check everything and count the rows, and change nothing')
    .option('--restart', 'begin again after a move that was interrupted')
    .examples(
      'otpd migrate to-postgres --dry-run',
      'otpd migrate to-postgres',
      'otpd migrate to-postgres --yes',
    )
    .run(async (context, options: MoveFlags) => {
      const { output } = context
      const { source, config, target } = await loadMoveConfig(context.io, options)
      await nameDataDir(context, source)
      const dryRun = options.dryRun === true
      if (!dryRun) await confirmMove(context, target.url)
      const { moveDataDir } = await import('../../src/server/bundle.ts')
      const result = await withProgress(context, (onStep) =>
        moveDataDir(
          { config, target, warn: output.warn },
          {
            dryRun,
            restart: options.restart === true,
            onStep: (step) => onStep(toProgress(step)),
          },
        ),
      ).catch((error: unknown) => {
        throw asCliError(error)
      })
      output.printData(result, () => formatResult(result, output))
      if (result.outcome === 'checked') output.suggestNext('otpd migrate to-postgres')
      else {
        output.note(
          `This data directory no longer serves. Keep its master key: every node needs it (OTPD_MASTER_KEY_FILE).
SQLite backups still contain people whom you erase from now on: delete them once you no longer need them.`,
        )
        // A node has no data directory, and refuses that of this run.
        createOutput(context.io, { ...context.flags, dataDir: undefined }).suggestNext('otpd serve')
      }
    })
}

/** Asks before the move: afterwards the data directory refuses to serve, and only a backup leads back. */
const confirmMove = (context: Context, url: string) => {
  const { host, pathname } = new URL(url)
  return confirm(context, {
    find: async () => 'move',
    describe: async () => ({
      question: `Move all data to ${printable(host + pathname)}? Its tables are created or emptied, and this data directory no longer serves. Only a backup leads back.`,
      name: 'move',
    }),
  })
}

function formatResult({ outcome, tables }: HostMove, { details, done }: Output): string {
  if (outcome === 'finished') return done('The interrupted move was complete, and is finished now')
  const filled = tables.filter(({ rows }) => rows > 0)
  return details(
    done(
      outcome === 'checked'
        ? 'The data directory can be moved; nothing was changed'
        : 'Moved to PostgreSQL, and compared',
    ),
    filled.map(({ name, rows }) => [name, rows === 1 ? '1 row' : `${rows} rows`]),
  )
}

/** Converts a step of the move to one that is shown. */
function toProgress(step: HostMoveStep): ProgressStep {
  switch (step.step) {
    case 'copy':
      return { step: 'copying rows', done: step.rows, total: step.rowsTotal, unit: 'rows' }
    case 'compare':
      return { step: `comparing ${step.table}` }
    case 'index':
      return { step: 'building indexes', done: step.done, total: step.total, unit: 'indexes' }
    default:
      return { step: otherSteps[step.step] }
  }
}

const otherSteps = {
  schema: 'creating the tables',
  empty: 'checking that the database is empty',
  keys: 'reading the keys',
  commit: 'committing',
  mark: 'marking the data directory as moved',
  finish: 'finishing an interrupted move',
} as const satisfies Partial<Record<HostMoveStep['step'], string>>
