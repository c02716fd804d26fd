import type { CliCommand } from './command.ts'
import type { AccountCheck, ProviderKind } from '../../src/server/bundle.ts'
import type { Context } from '../context.ts'
import { answerSettings, parseSettings } from '../host/provider-settings.ts'
import {
  appendProvider,
  configFilePath,
  listProviderNames,
  providerTable,
  type NewProvider,
} from '../host/provider-table.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import { collect } from '../terminal/pairs.ts'
import { ask } from '../terminal/prompt.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'
import { version } from '../version.ts'

type AddFlags = { config?: string; name?: string; set: string[]; print?: boolean; skipCheck?: boolean }

/** Registers `otpd provider add`. */
export function addProviderAddCommand(provider: CliCommand) {
  provider
    .command('add')
    .description(
      'ask for what a kind of provider needs, try it without sending, and write it to the configuration',
    )
    .argument('[kind]', 'kind of provider; otpd docs providers lists them')
    .option('--name <name>', 'name in the configuration (default: the kind)')
    .option(
      '--set <setting=value>',
      'a setting instead of a question, repeatable; secrets as nameEnv=VARIABLE or nameFile=PATH',
      collect,
      [],
    )
    .option('--print', 'print the table instead of trying and writing it')
    .option('--skip-check', 'write it without trying it')
    .option('--config <file>', "the server's configuration file; created if it does not exist (OTPD_CONFIG)")
    .examples(
      'otpd provider add aws-notify --config otpd.toml',
      'otpd provider add twilio --set accountSid=AC… --set authTokenEnv=TWILIO_TOKEN --set from=+15005550006',
      'otpd provider add prelude --print',
    )
    .run((context, kindName: string | undefined, flags: AddFlags) => addProvider(context, kindName, flags))
}

async function addProvider(context: Context, kindName: string | undefined, flags: AddFlags) {
  const { output } = context
  const kind = await chooseKind(context, kindName)
  const file = await configFilePath(context.io, flags.config, flags.print === true)
  const name = await chooseName(context.io, flags.name, kind.kind, file)
  const given = parseSettings(kind, flags.set)
  const answers = await answerSettings(context, kind, given, {
    file,
    name,
    asksSecrets: flags.print !== true,
    mayMissVariables: flags.print === true || flags.skipCheck === true,
  })
  const added: NewProvider = { name, kind: kind.kind, ...answers }
  const table = providerTable(added)
  if (flags.print) {
    output.printData({ name, kind: kind.kind, table }, () => table.trimEnd())
    return exitCodes.done
  }
  const check = flags.skipCheck ? undefined : await tryProvider(added)
  await appendProvider(context.io, file, added, table)
  const facts = check?.kind === 'ready' ? check.facts : []
  output.printData(
    {
      name,
      kind: kind.kind,
      configFile: file,
      secretFiles: added.secretFiles.map(({ path }) => path),
      facts,
    },
    () =>
      output.details(
        output.done(`${name} (${kind.title}) is in ${printable(file)}.`),
        facts.map(([label, value]) => [label, printable(value)]),
      ),
  )
  for (const { path } of added.secretFiles)
    output.note(`Only you can read ${printable(path)}, which has the secret.`)
  if (check === undefined) output.note('It was not tried.')
  if (kind.textByProvider?.includes('sms'))
    output.note(`${kind.title} writes the text itself; otpd passes the code and the language.`)
  output.note(
    `Next: otpd provider test ${name} PHONE --config ${shellWord(file)} sends a real message; kill -HUP makes a running server take it over.`,
  )
  return exitCodes.done
}

async function chooseKind(context: Context, name: string | undefined): Promise<ProviderKind> {
  const { providerKinds } = await import('../../src/server/bundle.ts')
  const names = providerKinds.map(({ kind }) => kind)
  const unknown = (answer: string) =>
    names.includes(answer) ? null : `There is no kind ${printable(answer)}. Kinds: ${names.join(', ')}.`
  const chosen =
    name ?? (await ask(context, { label: 'Kind', flag: 'KIND', hint: names.join(', '), validate: unknown }))
  const kind = providerKinds.find((candidate) => candidate.kind === chosen)
  if (!kind) throw usageError(unknown(chosen) ?? '')
  return kind
}

async function chooseName(io: Io, flag: string | undefined, kind: string, file: string): Promise<string> {
  const { providerNamePattern } = await import('../../src/server/bundle.ts')
  const taken = await listProviderNames(io, file)
  if (flag === undefined) {
    let name = kind
    for (let number = 2; taken.includes(name); number++) name = `${kind}-${number}`
    return name
  }
  if (!providerNamePattern.test(flag) || flag === 'inbox')
    throw usageError(
      '--name must have at most 32 characters of a-z, 0-9 and -, start with a letter, and not be inbox.',
    )
  if (taken.includes(flag))
    throw usageError(`${printable(file)} already has a provider ${flag}.`, 'Choose another --name.')
  return flag
}

/** @throws CliError the account is faulty; nothing was written */
async function tryProvider({ name, kind, values }: NewProvider): Promise<AccountCheck | undefined> {
  const { openProviders } = await import('../../src/server/bundle.ts')
  const providers = openProviders({ delivery: { providers: [{ name, kind, values }], routes: [] } }, version)
  try {
    const check = await providers.check(name)
    if (check?.kind !== 'faulty') return check
    throw new CliError(exitCodes.negative, 'PROVIDER_NOT_READY', `${check.problem} Nothing was written.`, {
      hints: [check.remedy, 'To write it all the same: --skip-check'],
    })
  } finally {
    providers.close()
  }
}
