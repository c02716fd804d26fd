import type { CliCommand } from './command.ts'
import type { HostGuardStatus } from '../../src/host/host.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import { loadServerConfig } from '../host/config.ts'
import { findRunning, noteRunning } from '../host/running.ts'
import { addGuardRuleCommands } from './guard-rules.ts'
import type { Output } from '../terminal/output.ts'
import { kept, wrapped } from '../terminal/table.ts'
import { printable, zonedTime } from '../terminal/text.ts'

/** Registers the commands for the guard against SMS pumping. */
export function addGuardCommands(program: CliCommand) {
  const guard = program.command('guard').description('protection against SMS pumping')

  addGuardRuleCommands(guard)

  addHostFlags(
    guard
      .command('status')
      .description(
        "show the allowances with what is spent of them, and what was flagged and blocked (run on the server's machine)",
      ),
  )
    .examples('otpd guard status', 'otpd guard status --json')
    .run(async (context, options: HostFlags) => {
      const running = await findRunning(await loadServerConfig(context.io, options, 'host command'))
      const status = await withHost(context, options, 'read', (host) =>
        host.guardStatus(running?.config.guard),
      )
      const { output } = context
      output.printData(status, () => statusText(status, output))
      if (running !== null) noteRunning(output, 'rules', running)
      if (status.mode === 'monitor' && status.countries.length > 0) {
        output.note(
          'The guard only monitors. To block messages, configure a provider and remove mode from [guard], or set it to "enforce".',
        )
      }
    })
}

const modes = {
  off: 'off: nothing is counted',
  monitor: 'monitor: all codes are sent, and the log shows which would be blocked',
  enforce: 'enforce: messages that break a rule are blocked',
} as const satisfies Record<HostGuardStatus['mode'], string>

const spentText = (
  { unverified, allowance }: { unverified: number; allowance: number },
  paint: Output['paint'],
) => {
  const text = `${unverified} of ${allowance}`
  return unverified >= allowance ? paint.red(text) : unverified >= allowance / 2 ? paint.yellow(text) : text
}

function statusText(
  { mode, challenge, since, rules, countries, allowances, relays, pools, alerts }: HostGuardStatus,
  { paint, formatTable }: Output,
): string {
  const countText = (value: number) => (value === 0 ? paint.dim('0') : String(value))
  const allowanceRows = [
    ...allowances.map((one) => [
      printable(one.developerId),
      printable(one.country),
      String(one.verifiedPhones),
      spentText(one, paint),
      countText(one.fromPool),
    ]),
    ...relays.map((relay) => [
      printable(relay.developerId),
      `${printable(relay.country)} codes of other systems`,
      '',
      spentText(relay, paint),
      '',
    ]),
    ...pools.map((pool) => [printable(pool.developerId), 'pool', '', spentText(pool, paint), '']),
  ]
  const ruleRows = rules.map(({ rule, limit, flagged, blocked }) => [
    rule,
    countText(flagged),
    countText(blocked),
    limit === null ? paint.dim('off') : printable(limit),
  ])
  const countryRows = countries.map(({ rule, country, flagged, blocked }) => [
    printable(country),
    rule,
    countText(flagged),
    countText(blocked),
  ])
  const countrySection =
    countryRows.length === 0
      ? `Nothing was flagged or blocked since ${zonedTime(since)}.`
      : formatTable(['COUNTRY', 'RULE', 'FLAGGED', 'BLOCKED'], countryRows)
  return [
    `Mode ${paint.bold(modes[mode])}`,
    ...(challenge === null || mode !== 'enforce'
      ? []
      : [`Challenge ${paint.bold(challenge)}: users who pass it have three times the allowances`]),
    `Counted since ${zonedTime(since)}`,
    '',
    // A limit is a sentence: cut, it would say nothing.
    formatTable([kept('RULE'), kept('FLAGGED'), kept('BLOCKED'), wrapped('LIMIT')], ruleRows),
    '',
    countrySection,
    ...(allowanceRows.length === 0
      ? []
      : [
          '',
          'Unverified messages of the last 24 hours, and how many may leave:',
          formatTable(['DEVELOPER', 'COUNTRY', 'VERIFIED PHONES', 'UNVERIFIED', 'FROM POOL'], allowanceRows),
        ]),
    ...alerts.map(({ country, developerId, until }) =>
      paint.red(
        country === 'pool'
          ? `Alert: ${printable(developerId)} has spent the pool of all countries (until ${zonedTime(until)})`
          : country === 'relays'
            ? `Alert: ${printable(developerId)} sends more codes of other systems than usual (until ${zonedTime(until)})`
            : `Alert: ${printable(country)} of ${printable(developerId)} has more unverified messages than usual (until ${zonedTime(until)})`,
      ),
    ),
  ].join('\n')
}
