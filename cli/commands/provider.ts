import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../../src/config/config.ts'
import type { ConfiguredProvider, TestedProvider } from '../../src/server/start.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import { asCliError, withHost, type HostFlags } from '../host/commands.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { facts, printable, type Paint } from '../terminal/text.ts'
import { version } from '../version.ts'

const addHostFlags = (command: Command) =>
  command
    .option('--data-dir <dir>', "the server's data directory (OTPD_DATA_DIR)")
    .option('--config <file>', "the server's configuration file (OTPD_CONFIG)")

type Listed = ConfiguredProvider & {
  routes: number
  /** Why and until when a server that runs here gives it nothing; null where it works, or nobody asked. */
  resting: { failure: string; until: string } | null
  /** Where its receipts are to be sent, for those who want it entered at their side; null without a public address. */
  callbackUrl: string | null
}

export function addProviderCommands(program: Command, run: Run) {
  const provider = program
    .command('provider')
    .description('who carries codes to phones, on the machine of the server')

  addHostFlags(
    provider.command('list').alias('ls').description('list the configured providers and how they fare'),
  )
    .addHelpText('after', examples('otpd provider list'))
    .action((flags: HostFlags, command: Command) =>
      run(command, async (context) => {
        const config = requireConfig(await loadServerConfig(flags), exitCodes.usage)
        const listed = await list(context, flags, config)
        context.output.answer(JSON.stringify({ data: listed }), () => listText(listed, context.output))
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
      run(command, async ({ output }) => {
        const config = requireConfig(await loadServerConfig(flags), exitCodes.usage)
        const tested = await withProviders(config, (providers) => providers.test(name, phone, flags.channel))
        output.answer(JSON.stringify({ data: tested }), () => testText(tested, output.paint))
        return tested.outcome === 'accepted' ? exitCodes.done : exitCodes.negative
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

async function list(context: Context, flags: HostFlags, config: Config): Promise<Listed[]> {
  const { dataDir, delivery } = config
  // Looking must not make a data directory.
  const isThere = dataDir !== null && existsSync(join(dataDir, 'otpd.db'))
  const listed = await withProviders(config, (providers) => providers.list())
  const known = isThere
    ? await withHost(context, flags, async (host) => ({
        resting: await host.listRestingProviders(),
        urls: new Map(listed.map(({ name }) => [name, host.callbackUrlOf(name)])),
      }))
    : undefined
  return listed.map((one) => {
    const rest = known?.resting.find(({ name }) => name === one.name)
    return {
      ...one,
      routes: delivery.routes.filter(({ providers }) => providers.includes(one.name)).length,
      resting: rest ? { failure: rest.failure, until: rest.until } : null,
      callbackUrl: known?.urls.get(one.name) ?? null,
    }
  })
}

function listText(listed: Listed[], { paint, table, when }: Output) {
  if (listed.length === 0) return 'No providers yet: codes stay in the inbox. To add one: README, Providers'
  const rows = listed.map(({ name, title, channels, resting }) => [
    printable(name),
    title,
    channels.join(', '),
    resting ? `rests (${resting.failure}), again ${when(resting.until)}` : 'ready',
  ])
  const urls = listed.flatMap(({ name, callbackUrl }): [string, string][] =>
    callbackUrl === null ? [] : [[printable(name), callbackUrl]],
  )
  const lists = table(['NAME', 'KIND', 'CHANNELS', 'STATE'], rows)
  return urls.length === 0 ? lists : `${lists}\n\nReceipts go to:\n${facts(urls, paint)}`
}

function testText({ provider, channel, outcome, messageId, failure, tookMs }: TestedProvider, paint: Paint) {
  const mark = outcome === 'accepted' ? paint.green('✓') : paint.red('✗')
  return [
    `${mark} ${printable(provider)}: ${outcome}`,
    facts(
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
