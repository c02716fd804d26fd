import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import {
  describeAlerts,
  destinationText,
  listDestinations,
  sendTests,
  testText,
  type AlertState,
} from '../host/alerts.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { findRunning } from '../host/running.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'
import { kept, optional, wrapped } from '../terminal/table.ts'
import { printable, relativeTime } from '../terminal/text.ts'

/** Registers the commands for alerts to the operator. */
export function addAlertsCommands(program: CliCommand) {
  const alerts = program.command('alerts')
  addHostFlags(alerts.description("list what is wrong now and who is told (run on the server's machine)"))
    .examples('otpd alerts', 'otpd alerts test', 'otpd alerts --json')
    .run(async (context, flags: HostFlags) => {
      const { io, output } = context
      const listed = await withHost(context, flags, 'read', (host) => host.listAlerts())
      const state = describeAlerts(listed, await listDestinations(io, flags))
      output.printData(state, () => alertsText(state, output, io.now()))
      if (state.destinations.length === 0) output.note(noDestinations)
    })

  addHostFlags(
    alerts
      .command('test')
      .argument('[name...]', 'names of destinations (default: all)')
      .description('have the running server send a test to the destinations'),
  )
    .examples('otpd alerts test', 'otpd alerts test email')
    .run((context, names: string[], _: HostFlags, command: CliCommand) =>
      // The parent has the same options, and takes them over.
      testDestinations(context, names, command.optsWithGlobals<HostFlags>()),
    )
}

const noDestinations = 'No alerts are configured. Add to the configuration: [[alerts]] (otpd docs alerts)'

function alertsText(
  { alerts, destinations }: AlertState,
  { paint, formatTable, complete }: Output,
  nowMs: number,
): string {
  const rows = alerts.map(({ severity, message, remedy, since, isClearing }) => [
    severity === 'critical' ? paint.red(severity) : paint.yellow(severity),
    relativeTime(since, nowMs),
    `${printable(message)}${isClearing ? ' (gone for now)' : ''}`,
    complete(printable(remedy)),
  ])
  const isWatched = destinations.length > 0
  const faults =
    rows.length === 0
      ? `Nothing ${isWatched ? 'is wrong' : 'is watched'}.`
      : formatTable([kept('SEVERITY'), kept('SINCE'), wrapped('ALERT'), wrapped('WHAT TO DO')], rows)
  if (!isWatched) return faults
  const told = destinations.map((destination) => [
    printable(destination.name),
    printable(destination.kind),
    destination.min,
    `${destination.failure === null ? paint.green('●') : paint.yellow('▲')} ${destinationText(destination, nowMs)}`,
  ])
  return `${faults}\n\n${formatTable([kept('SENT TO'), optional('KIND'), kept('FROM'), wrapped('STATE')], told)}`
}

/** Has the running server send a test to each destination. */
async function testDestinations(context: Context, names: string[], flags: HostFlags) {
  const { io, output } = context
  const loaded = await loadServerConfig(io, flags, 'host command')
  requireConfig(loaded, exitCodes.usage)
  const running = await findRunning(loaded)
  if (running === null)
    throw new CliError(
      exitCodes.unreachable,
      'SERVER_NOT_RUNNING',
      'No server runs on this data directory.',
      {
        hints: ['Start it: otpd serve. It has the secrets of the destinations, and sends the test.'],
      },
    )
  const configured = running.config.alerts.map(({ name }) => name)
  if (configured.length === 0) throw usageError('The running server has no alerts.', noDestinations)
  for (const name of names)
    if (!configured.includes(name))
      throw usageError(`No alert is named ${printable(name)}.`, `Configured: ${configured.join(', ')}.`)
  const destinations = names.length === 0 ? configured : [...new Set(names)]
  const results = await withHost(context, flags, 'write', (host) => sendTests(host, destinations, io))
  output.printData(results, () =>
    results
      .map((result) => `${result.sent ? output.paint.green('✓') : output.paint.red('✗')} ${testText(result)}`)
      .join('\n'),
  )
  return results.every(({ sent }) => sent) ? exitCodes.done : exitCodes.negative
}
