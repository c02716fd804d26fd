import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../../src/config/config.ts'
import type { ConfiguredProvider, ProviderTestResult } from '../../src/server/start.ts'
import type { Context, RunCommand } from '../context.ts'
import { exitCodes } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import { addHostFlags, asCliError, withHost, type HostFlags } from '../host/commands.ts'
import type { Output } from '../terminal/output.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { formatFacts, printable, type Paint } from '../terminal/text.ts'
import { version } from '../version.ts'

type ListedProvider = ConfiguredProvider & {
  routes: number
  /** Why and until when a server that runs here gives it nothing; null where it works, or nobody asked. */
  resting: { failure: string; until: string } | null
  /** Where its receipts are to be sent, for those who want it entered at their side; null without a public address. */
  callbackUrl: string | null
}

export function addProviderCommands(program: Command, runCommand: RunCommand) {
  const provider = program
    .command('provider')
    .description('who carries codes to phones, on the machine of the server')

  addHostFlags(
    provider.command('list').alias('ls').description('list the configured providers and how they fare'),
  )
    .addHelpText('after', examples('otpd provider list'))
    .action((flags: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const config = requireConfig(await loadServerConfig(flags), exitCodes.usage)
        const providers = await listProviders(context, flags, config)
        context.output.printResult(JSON.stringify({ data: providers }), () =>
          listText(providers, context.output),
        )
      }),
    )

  addHostFlags(
    provider.command('test').description('send a real message by one provider and say what came of it'),
  )
    .argument('<name>', 'of the provider, as the configuration has it')
    .argument('<phone>', 'whom to write to')
    .option('--channel <channel>', 'sms, whatsapp, telegram or voice; else the first that it has')
    .addHelpText('after', examples('otpd provider test main +14155550123'))
    .action((name: string, phone: string, flags: HostFlags & { channel?: string }, command: Command) =>
      runCommand(command, async ({ output }) => {
        const config = requireConfig(await loadServerConfig(flags), exitCodes.usage)
        const testResult = await withProviders(config, (providers) =>
          providers.test(name, phone, flags.channel),
        )
        output.printResult(JSON.stringify({ data: testResult }), () => testText(testResult, output.paint))
        return testResult.outcome === 'accepted' ? exitCodes.done : exitCodes.negative
      }),
    )
}

async function withProviders<T>(
  config: Config,
  work: (providers: ReturnType<(typeof import('../../src/server/bundle.ts'))['openProviders']>) => Promise<T>,
): Promise<T> {
  const { openProviders } = await import('../../src/server/bundle.ts')
  const providers = openProviders(config, version)
  try {
    return await work(providers)
  } catch (error) {
    throw asCliError(error)
  } finally {
    providers.close()
  }
}

async function listProviders(context: Context, flags: HostFlags, config: Config): Promise<ListedProvider[]> {
  const { dataDir, delivery } = config
  // Looking must not make a data directory.
  const hasDatabase = dataDir !== null && existsSync(join(dataDir, 'otpd.db'))
  const configuredProviders = await withProviders(config, (providers) => providers.list())
  const serverState = hasDatabase
    ? await withHost(context, flags, async (host) => ({
        openCircuits: await host.listOpenCircuits(),
        callbackUrls: new Map(configuredProviders.map(({ name }) => [name, host.callbackUrlFor(name)])),
      }))
    : undefined
  return configuredProviders.map((provider) => {
    const openCircuit = serverState?.openCircuits.find(({ name }) => name === provider.name)
    return {
      ...provider,
      routes: delivery.routes.filter(({ providers }) => providers.includes(provider.name)).length,
      resting: openCircuit ? { failure: openCircuit.failure, until: openCircuit.until } : null,
      callbackUrl: serverState?.callbackUrls.get(provider.name) ?? null,
    }
  })
}

function listText(providers: ListedProvider[], { paint, formatTable, formatTime }: Output) {
  if (providers.length === 0)
    return 'No providers yet: codes stay in the inbox. To add one: README, Providers'
  const rows = providers.map(({ name, title, channels, resting }) => [
    printable(name),
    title,
    channels.join(', '),
    resting ? `rests (${resting.failure}), again ${formatTime(resting.until)}` : 'ready',
  ])
  const urls = providers.flatMap(({ name, callbackUrl }): [string, string][] =>
    callbackUrl === null ? [] : [[printable(name), callbackUrl]],
  )
  const lists = formatTable(['NAME', 'KIND', 'CHANNELS', 'STATE'], rows)
  return urls.length === 0 ? lists : `${lists}\n\nReceipts go to:\n${formatFacts(urls, paint)}`
}

function testText(
  { provider, channel, outcome, messageId, failure, tookMs }: ProviderTestResult,
  paint: Paint,
) {
  const mark = outcome === 'accepted' ? paint.green('✓') : paint.red('✗')
  return [
    `${mark} ${printable(provider)}: ${outcome}`,
    formatFacts(
      [
        ['Channel', channel],
        ['Message', messageId && printable(messageId)],
        [
          'Class',
          failure && `${failure.class}${failure.permanent ? ', for good' : ''}, at the ${failure.at}`,
        ],
        ['Its word', failure?.providerCode ? printable(failure.providerCode) : null],
        ['Took', `${tookMs} ms`],
      ],
      paint,
    ),
  ].join('\n')
}
