import type { CliCommand } from './command.ts'
import type { HostAuditVerification } from '../../src/host/host.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import { exitCodes } from '../terminal/errors.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { AuditEntry } from '../client/resources.ts'
import { kept, optional } from '../terminal/table.ts'
import { printable, type Fact } from '../terminal/text.ts'

type Options = ListOptions & { action?: AuditEntry['action']; target?: string }

/** Registers the audit commands. */
export function addAuditCommand(program: CliCommand) {
  const audit = program.command('audit')
  addListOptions(audit.description('show who changed what and from where, newest first'))
    .option('--action <action>', 'only this action, like credential.rotated')
    .option('--target <id>', 'only actions on this application, project or webhook')
    .examples('otpd audit', 'otpd audit --action login.failed', 'otpd audit --limit 200 --json')
    .run(async ({ api, output }, options: Options) => {
      const { action, target: targetId } = options
      const page = await readList(options, (paging) =>
        api.asDeveloper('GET', '/v1/audit', { query: { ...paging, action, targetId } }),
      )
      printList(output, page, (entries) => auditText(entries, output))
    })

  addHostFlags(
    audit
      .command('verify')
      .description("prove that no entry was changed or deleted (run on the server's machine)"),
  )
    .examples('otpd audit verify', 'otpd audit verify --json > heads.json')
    .run(async (context, flags: HostFlags) => {
      const { output } = context
      const result = await withDataDir(context, flags, (host, needs) => host.verifyAudit(needs))
      output.printData(result, () => verificationText(result, output))
      return result.isUnbroken ? exitCodes.done : exitCodes.negative
    })
}

const findings = {
  entry_changed: 'entry was changed',
  entry_missing: 'entry was deleted',
  entry_added: 'entry is forged',
  head_changed: 'chain was cut, or deleted and started again',
  chain_missing: 'all entries were deleted',
  chain_set_back: 'newest entries were deleted',
} as const satisfies Record<HostAuditVerification['breaks'][number]['kind'], string>

function verificationText(
  { isUnbroken, breaks, entries, deleted, provedSince, heads }: HostAuditVerification,
  { details, done, paint, formatTable, formatTime }: Output,
): string {
  const facts: Fact[] = [
    ['Entries', deleted === 0 ? String(entries) : `${entries}, and ${deleted} deleted by retention`],
    ['Chains', String(heads.length)],
    ['Since', provedSince && formatTime(provedSince)],
  ]
  if (isUnbroken) return details(done('The audit trail is unbroken'), facts)
  const rows = breaks.map(({ chain, kind, position, entryId }) => [
    printable(chain ?? 'unknown'),
    position === null ? '-' : String(position),
    findings[kind],
    printable(entryId ?? '-'),
  ])
  const table = formatTable(['CHAIN', kept('ENTRY'), kept('FINDING'), 'ID'], rows)
  return `${details(`${paint.red('✗')} The audit trail was tampered with`, facts)}\n\n${table}`
}

/** Formats audit entries as a table, both a developer's and the operator's. */
export function auditText(
  entries: Array<Omit<AuditEntry, 'id'>>,
  { formatTable, clockTime, clockHeading }: Output,
): string {
  if (entries.length === 0) return 'No audit entries: no changes and no logins.'
  const rows = entries.map((entry) => [
    clockTime(entry.at),
    entry.action,
    printable(entry.targetName ?? entry.targetId ?? '-'),
    entry.ip ?? entry.source,
    printable(entry.detail ?? ''),
    printable(entry.userAgent ?? ''),
    entry.actorId === null && entry.source === 'api'
      ? 'unknown'
      : (entry.tokenId ?? entry.actorId ?? 'operator'),
  ])
  return formatTable(
    [
      kept(clockHeading('WHEN')),
      kept('ACTION'),
      'TARGET',
      optional('FROM'),
      optional('DETAIL'),
      optional('CLIENT'),
      'ACTOR',
    ],
    rows,
  )
}
