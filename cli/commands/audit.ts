import type { Command } from 'commander'
import { examples } from '../help.ts'
import {
  addListOptions,
  firstNonEmptyPage,
  listQuery,
  printNextPageHint,
  type ListOptions,
} from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { RunCommand } from '../context.ts'
import type { AuditEntry } from '../client/resources.ts'
import { truncate, printable } from '../terminal/text.ts'

type Options = ListOptions & { action?: AuditEntry['action']; target?: string }

/** Registers the audit command. */
export function addAuditCommand(program: Command, runCommand: RunCommand) {
  addListOptions(program.command('audit').description('show who changed what and from where, newest first'))
    .option('--action <action>', 'only this action, like credential.rotated')
    .option('--target <id>', 'only actions on this application, project or webhook')
    .addHelpText(
      'after',
      examples('otpd audit', 'otpd audit --action login.failed', 'otpd audit --limit 200 --json'),
    )
    .action((options: Options, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const { action, target: targetId } = options
        const query = { ...listQuery(options), ...(action && { action }), ...(targetId && { targetId }) }
        const { api } = connect()
        const response = await firstNonEmptyPage((pageQuery) =>
          api.asDeveloper('GET', '/v1/audit', { query: { ...query, ...pageQuery } }),
        )
        output.printResult(response.body, () => auditText(response.data, output))
        printNextPageHint(output, response)
      }),
    )
}

/** Formats audit entries as a table, both a developer's and the operator's. */
export function auditText(
  entries: Array<Omit<AuditEntry, 'id'>>,
  { columns, formatTable, formatTime }: Output,
): string {
  if (entries.length === 0) return 'No audit entries: no changes and no logins.'
  // Without the last two columns, and with a shortened actor, the table fits a narrower terminal.
  const isNarrow = (columns() ?? Infinity) < 132
  const formatActor = (id: string) => (isNarrow ? truncate(id, 12, '…') : id)
  const rows = entries.map((entry) => [
    formatTime(entry.at),
    entry.action,
    printable(entry.targetName ?? entry.targetId ?? '-'),
    printable(entry.detail ?? ''),
    entry.actorId === null && entry.source === 'api'
      ? 'unknown'
      : formatActor(entry.tokenId ?? entry.actorId ?? 'operator'),
    entry.ip ?? entry.source,
    printable(entry.userAgent ?? ''),
  ])
  const headings = ['WHEN', 'ACTION', 'TARGET', 'DETAIL', 'ACTOR', 'SOURCE', 'CLIENT']
  const columnCount = isNarrow ? 5 : headings.length
  return formatTable(
    headings.slice(0, columnCount),
    rows.map((row) => row.slice(0, columnCount)),
  )
}
