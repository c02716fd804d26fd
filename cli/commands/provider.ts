import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import type { Config, LoadedConfig } from '../../src/config/config.ts'
import type { ConfiguredProvider, ProviderTestResult } from '../../src/server/start.ts'
import type { Context } from '../context.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
import { addHostFlags, asCliError, withHost, type HostFlags } from '../host/commands.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { nameDataDir } from '../host/name-data-dir.ts'
import { describeRunning, findRunning, noteRunning } from '../host/running.ts'
import { kept, optional } from '../terminal/table.ts'
import { channels } from '../../src/shared/otp-values.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'
import { version } from '../version.ts'
import { addProviderAddCommand } from './provider-add.ts'

type OpenCircuit = { node: string; failure: string; until: string }

type ListedProvider = ConfiguredProvider & {
  routes: number
  /** Channels on which the provider writes the text. */
  textByProvider: string[]
  /** Circuit that is open the longest of all nodes; null if closed or unknown. The name is part of the --json output. */
  resting: OpenCircuit | null
  /** Open circuits of all nodes: each node has its own. */
  openCircuits: OpenCircuit[]
  /** URL for delivery receipts, to enter in the provider's console; null without a public URL, or if it makes no such calls. */
  callbackUrl: string | null
}

/** Registers the commands for providers. */
export function addProviderCommands(program: CliCommand) {
  const provider = program
    .command('provider')
    .description("SMS and voice providers (run on the server's machine)")

  addHostFlags(provider.command('list').alias('ls').description('list configured providers and their state'))
    .examples('otpd provider list')
    .run(async (context, flags: HostFlags) => {
      const loaded = await loadServerConfig(context.io, flags, 'host command')
      const config = requireConfig(loaded, exitCodes.usage)
      await nameDataDir(context, loaded)
      const running = await findRunning(loaded)
      const configured = running?.providers ?? (await listConfigured(context.io, flags))
      const providers = await listProviders(context, flags, running?.config ?? config, configured)
      const text = () => listText(providers, context.io.now(), context.output)
      const names = providers.map(({ name }) => name)
      context.output.printData(providers, text, names)
      if (running !== null) noteRunning(context.output, 'providers', running)
    })

  addProviderAddCommand(provider)

  addHostFlags(
    provider.command('test').description('send a real message through one provider and show the result'),
  )
    .argument('<provider>', 'name of the provider in the configuration')
    .argument('<phone>', 'phone number to send to')
    .addOption(
      new Option('--channel <channel>', `${channels.join(', ')} (default: the provider's first)`).choices(
        channels,
      ),
    )
    .examples('otpd provider test main +14155550123')
    .run(async ({ io, output }, name: string, phone: string, flags: HostFlags & { channel?: string }) => {
      const loaded = await loadServerConfig(io, flags)
      const config = requireConfig(loaded, exitCodes.usage)
      await refuseProviderOfServer(name, loaded, config)
      const testResult = await withProviders(config, (providers) =>
        providers.test(name, phone, flags.channel),
      )
      output.printData(testResult, () => testText(testResult, output))
      return testResult.outcome === 'accepted' ? exitCodes.done : exitCodes.negative
    })
}

/** Refuses a provider that only the running server has: this shell reads another configuration, without its secrets. */
async function refuseProviderOfServer(name: string, loaded: LoadedConfig, { delivery }: Config) {
  if (delivery.providers.some((provider) => provider.name === name)) return
  const running = await findRunning(loaded)
  if (!running?.providers.some((provider) => provider.name === name)) return
  const file = running.config.configFile
  throw usageError(
    `This shell's configuration has no provider ${printable(name)}; that of ${describeRunning(running)} has.`,
    file === null
      ? 'Set the variables of the server in this shell.'
      : `Name its configuration: --config ${shellWord(file)}`,
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

/** Lists the providers of this shell's configuration, which must then be complete: no server runs. */
async function listConfigured(io: Io, flags: HostFlags) {
  const config = requireConfig(await loadServerConfig(io, flags), exitCodes.usage)
  return withProviders(config, (providers) => providers.list())
}

/** @throws CliError this user cannot read the data directory, which says what the server has */
async function requireReadable(dataDir: string) {
  const host = await import('../../src/server/bundle.ts')
  try {
    host.requireReadable(dataDir)
  } catch (error) {
    throw asCliError(error)
  }
}

async function listProviders(
  context: Context,
  flags: HostFlags,
  config: Config,
  configuredProviders: readonly ConfiguredProvider[],
): Promise<ListedProvider[]> {
  const { dataDir, delivery, publicUrl } = config
  if (dataDir !== null) await requireReadable(dataDir)
  // The list itself needs no database.
  const hasDatabase = config.database !== null || (dataDir !== null && existsSync(join(dataDir, 'otpd.db')))
  const serverState = hasDatabase
    ? await withHost(context, flags, 'read', async (host) => ({
        openCircuits: await host.listOpenCircuits(),
        callbackUrls: new Map(
          configuredProviders.map(({ name }) => [name, host.callbackUrlFor(name, publicUrl)]),
        ),
      }))
    : undefined
  const { channelsWithProviderText } = await import('../../src/server/bundle.ts')
  return configuredProviders.map((provider) => {
    const openCircuits = (serverState?.openCircuits ?? [])
      .filter(({ name }) => name === provider.name)
      .map(({ node, failure, until }) => ({ node, failure, until }))
    return {
      ...provider,
      textByProvider: channelsWithProviderText(provider.kind).filter((channel) =>
        provider.channels.includes(channel),
      ),
      routes: delivery.routes.filter(({ providers }) => providers.includes(provider.name)).length,
      resting: openCircuits.toSorted((a, b) => (a.until < b.until ? 1 : -1))[0] ?? null,
      openCircuits,
      callbackUrl:
        provider.takesReceipts === false ? null : (serverState?.callbackUrls.get(provider.name) ?? null),
    }
  })
}

/** Name of a node that shares its database with no other, which needs none. */
const soleNode = 'local'

function listText(
  providers: ListedProvider[],
  nowMs: number,
  { formatFacts, formatTable, formatTime }: Output,
) {
  if (providers.length === 0) return 'No providers yet: codes stay in the inbox. Add one: otpd provider add'
  const rows = providers.map(({ name, title, channels, textByProvider, openCircuits }) => [
    printable(name),
    title,
    channels.map((channel) => (textByProvider.includes(channel) ? `${channel}*` : channel)).join(', '),
    openCircuits
      .map(
        ({ node, failure, until }) =>
          `circuit open${node === soleNode ? '' : ` at ${printable(node)}`} (${failure}), retry ${Date.parse(until) > nowMs ? formatTime(until) : 'with the next message'}`,
      )
      .join('; ') || 'ready',
  ])
  const urls = providers.flatMap(({ name, callbackUrl }): [string, string][] =>
    callbackUrl === null ? [] : [[printable(name), callbackUrl]],
  )
  const lists = formatTable(['NAME', optional('KIND'), kept('CHANNELS'), kept('STATE')], rows)
  const footnote = providers.some(({ textByProvider }) => textByProvider.length > 0)
    ? '\n\n* The provider writes the text: otpd passes the code and the language.'
    : ''
  const receiptUrls = urls.length === 0 ? '' : `\n\nReceipt URLs:\n${formatFacts(urls)}`
  return `${lists}${footnote}${receiptUrls}`
}

function testText(
  { provider, channel, outcome, messageId, failure, tookMs, late }: ProviderTestResult,
  { details, paint }: Output,
) {
  const mark = outcome !== 'accepted' ? paint.red('✗') : late ? paint.yellow('▲') : paint.green('✓')
  return details(`${mark} ${printable(provider)}: ${outcome}`, [
    ['Channel', channel],
    ['Message', messageId && printable(messageId)],
    [
      'Failure',
      failure && `${failure.class}${failure.permanent ? ' (permanent)' : ''}, affects the ${failure.at}`,
    ],
    ['Provider error', failure?.providerCode ? printable(failure.providerCode) : null],
    ['Provider said', failure?.reply ? printable(failure.reply) : null],
    [
      'Took',
      `${tookMs} ms${late ? ', too long: a send waits 8 s and then takes the message as uncertain' : ''}`,
    ],
  ])
}
