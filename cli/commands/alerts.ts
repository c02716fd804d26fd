import type { Command } from 'commander'
import type { HostAlerts } from '../../src/host/host.ts'
import type { Context, RunCommand } from '../context.ts'
import { examples } from '../help.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { findRunning } from '../host/running.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'
import { kept, wrapped } from '../terminal/table.ts'
import { printable, relativeTime } from '../terminal/text.ts'

/** Registers the commands for alerts to the operator. */
export function addAlertsCommands(program: Command, runCommand: RunCommand) {
  const alerts = program.command('alerts')
  addHostFlags(alerts.description("list what is wrong now, and since when (run on the server's machine)"))
    .addHelpText('after', examples('otpd alerts', 'otpd alerts test', 'otpd alerts --json'))
    .action((flags: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { io, output } = context
        const listed = await withHost(context, flags, 'read', (host) => host.listAlerts())
        const destinations = await listDestinations(flags)
        output.printResult(JSON.stringify({ data: { ...listed, destinations } }), () =>
          alertsText(listed, output, io.now(), destinations.length > 0),
        )
        if (destinations.length === 0) output.note(noDestinations)
      }),
    )

  addHostFlags(
    alerts
      .command('test')
      .argument('[name...]', 'names of destinations (default: all)')
      .description('have the running server send a test to the destinations'),
  )
    .addHelpText('after', examples('otpd alerts test', 'otpd alerts test email'))
    .action((names: string[], _: HostFlags, command: Command) =>
      runCommand(command, (context) =>
        // The parent has the same options, and takes them over.
        testDestinations(context, names, command.optsWithGlobals<HostFlags>()),
      ),
    )
}

const noDestinations = 'No alerts are configured. Add to the configuration: [[alerts]] (otpd docs alerts)'

/** Lists the destinations of the running server, otherwise those of the configuration. */
async function listDestinations(flags: HostFlags) {
  const loaded = await loadServerConfig(flags, 'host command')
  const running = await findRunning(loaded)
  const { alerts } = running?.config ?? requireConfig(loaded, exitCodes.usage)
  return alerts.map(({ name, kind, min }) => ({ name, kind, min }))
}

function alertsText(
  { alerts, waiting }: HostAlerts,
  { paint, formatTable }: Output,
  nowMs: number,
  isWatched: boolean,
): string {
  const rows = alerts.map(({ severity, message, remedy, since, isClearing }) => [
    severity === 'critical' ? paint.red(severity) : paint.yellow(severity),
    relativeTime(since, nowMs),
    `${printable(message)}${isClearing ? ' (gone for now)' : ''}`,
    printable(remedy),
  ])
  const state =
    rows.length === 0
      ? `Nothing ${isWatched ? 'is wrong' : 'is watched'}.`
      : formatTable([kept('SEVERITY'), kept('SINCE'), wrapped('ALERT'), wrapped('WHAT TO DO')], rows)
  const failures = waiting.flatMap(({ destination, failure, attempts, at }) =>
    failure === null
      ? []
      : `${paint.yellow('▲')} A notice to ${printable(destination)} waits since ${relativeTime(at, nowMs)}: ${printable(failure)} (${attempts} ${attempts === 1 ? 'attempt' : 'attempts'})`,
  )
  return [state, ...failures].join('\n')
}

const waitMs = 30_000
const pollMs = 250

/** Queues a test for each destination, and waits until the running server has sent it. */
async function testDestinations(context: Context, names: string[], flags: HostFlags) {
  const { io, output } = context
  const running = await findRunning(await loadServerConfig(flags, 'host command'))
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

  const results = await withHost(context, flags, 'write', async (host) => {
    const at = await host.queueTestAlerts(destinations)
    const untilMs = io.now() + waitMs
    for (;;) {
      const { waiting } = await host.listAlerts()
      const results = destinations.map((destination) => {
        const queued = waiting.find((notice) => notice.destination === destination && notice.at === at)
        return { destination, sent: queued === undefined, failure: queued?.failure ?? null }
      })
      const isDone = results.every(({ sent, failure }) => sent || failure !== null)
      if (isDone || io.now() >= untilMs) {
        await host.deleteTestAlerts(destinations, at)
        return results
      }
      await io.sleep(pollMs)
    }
  })
  output.printResult(JSON.stringify({ data: results }), () =>
    results
      .map(({ destination, sent, failure }) =>
        sent
          ? `${output.paint.green('✓')} ${printable(destination)}: sent`
          : `${output.paint.red('✗')} ${printable(destination)}: ${printable(failure ?? 'the server has not sent it in 30 seconds')}`,
      )
      .join('\n'),
  )
  return results.every(({ sent }) => sent) ? exitCodes.done : exitCodes.negative
}
