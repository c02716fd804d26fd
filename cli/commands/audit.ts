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

export function addAuditCommand(program: Command, runCommand: RunCommand) {
  addListOptions(program.command('audit').description('who changed what, and from where, newest first'))
    .option('--action <action>', 'only this, like credential.rotated')
    .option('--target <id>', 'only what was done to this application, project or webhook')
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

/** The trail as a table; of the operator's as well, which has the same fields. */
export function auditText(
  entries: Array<Omit<AuditEntry, 'id'>>,
  { columns, formatTable, formatTime }: Output,
): string {
  if (entries.length === 0) return 'Nothing noted yet: no change and no login.'
  // A terminal that is not very wide has room for what was done, and by whom.
  const isNarrow = (columns() ?? Infinity) < 132
  const actor = (id: string) => (isNarrow ? truncate(id, 12, '…') : id)
  const rows = entries.map((entry) => [
    formatTime(entry.at),
    entry.action,
    printable(entry.targetName ?? entry.targetId ?? '-'),
    printable(entry.detail ?? ''),
    entry.actorId === null && entry.source === 'api' ? 'nobody' : actor(entry.actorId ?? 'operator'),
    entry.ip ?? entry.source,
    printable(entry.userAgent ?? ''),
  ])
  const headings = ['WHEN', 'ACTION', 'OF', 'DETAIL', 'BY', 'FROM', 'WITH']
  const columnCount = isNarrow ? 5 : headings.length
  return formatTable(
    headings.slice(0, columnCount),
    rows.map((row) => row.slice(0, columnCount)),
  )
}
