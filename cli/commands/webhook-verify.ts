import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { readEnvFile } from '../client/credentials.ts'
import { durationMs, type Context, type RunCommand } from '../context.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import { findApplication } from '../client/find.ts'
import { printable } from '../terminal/text.ts'
import { checkWebhook, type Check } from '../webhooks/check.ts'

type Options = {
  secretStdin?: true
  app?: string
  envFile?: string
  headerFile?: string
  id?: string
  timestamp?: string
  signature?: string
  bodyFile?: string
  tolerance?: string
}

export function addVerifyCommand(webhook: Command, runCommand: RunCommand) {
  webhook
    .command('verify')
    .description('check the signature of a delivery, and say which part is wrong')
    .option('--app <id|name>', 'check with the secret of this application')
    .option(
      '--env-file <path>',
      'check with the OTPD_WEBHOOK_SECRET in there (else the variable of that name)',
    )
    .option('--secret-stdin', 'check with the first line of standard input')
    .option('--header-file <path>', 'the headers, a line each, as curl -D writes them')
    .option('--id <id>', 'the header webhook-id')
    .option('--timestamp <seconds>', 'the header webhook-timestamp')
    .option('--signature <signature>', 'the header webhook-signature')
    .option('--body-file <path>', 'the body (standard input)')
    .option('--tolerance <time>', 'how old it may be (5m)')
    .addHelpText(
      'after',
      examples(
        'otpd webhook verify --app web --header-file delivery.headers < delivery.json',
        'otpd webhook verify --env-file .env.otpd --header-file delivery.headers --body-file delivery.json',
      ),
    )
    .action((options: Options, command: Command) =>
      runCommand(command, async (context) => {
        const { io, output } = context
        const toleranceMs = durationMs(options.tolerance ?? '5m', '--tolerance')
        const message = { ...readHeaders(context, options), ...(await readSecretAndBody(context, options)) }
        const checks = checkWebhook(message, { nowMs: io.now(), toleranceMs })
        const valid = checks.every(({ ok }) => ok)
        const faults = checks
          .filter(({ ok }) => !ok)
          .map(({ part, message: fault }) => ({ part, message: fault }))
        output.printResult(JSON.stringify({ data: { valid, faults } }), () =>
          checksText(checks, valid, context),
        )
        return valid ? exitCodes.done : exitCodes.negative
      }),
    )
}

function checksText(checks: Check[], valid: boolean, { output: { paint } }: Context) {
  const lines = checks.map(({ part, ok: isOk, message }) =>
    [isOk ? paint.green('  ✓') : paint.red('  ✗'), part.padEnd(9), printable(message)].join(' '),
  )
  const title = valid
    ? `${paint.green('✓')} The delivery is genuine.`
    : `${paint.red('✗')} A receiver would refuse this delivery.`
  return [title, ...lines].join('\n')
}

function readHeaders({ io }: Context, { headerFile, id, timestamp, signature }: Options) {
  const fileHeaders =
    headerFile === undefined
      ? new Map<string, string>()
      : parseHeaders(readText(io, headerFile, '--header-file'))
  const requireHeader = (name: string, flag: string | undefined, flagName: string) => {
    const value = flag ?? fileHeaders.get(name)
    if (value === undefined)
      throw usageError(
        headerFile === undefined ? `${flagName} is missing.` : `${headerFile} has no ${name}.`,
        'Give --header-file FILE, or all of --id, --timestamp and --signature.',
      )
    return value
  }
  return {
    id: requireHeader('webhook-id', id, '--id'),
    timestamp: requireHeader('webhook-timestamp', timestamp, '--timestamp'),
    signature: requireHeader('webhook-signature', signature, '--signature'),
  }
}

const parseHeaders = (text: string) =>
  new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const [, name, value] = /^[<>]?\s*([\w-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
      return name === undefined || value === undefined ? [] : [[name.toLowerCase(), value]]
    }),
  )

async function readSecretAndBody(context: Context, options: Options) {
  const { io } = context
  const sources = [options.app, options.envFile, options.secretStdin].filter((source) => source !== undefined)
  if (sources.length > 1) throw usageError('Give one of --app, --env-file and --secret-stdin.')
  const readBody = async () =>
    options.bodyFile === undefined ? await io.readInput() : readText(io, options.bodyFile, '--body-file')
  if (options.secretStdin !== true)
    return { secret: await findSecret(context, options), body: await readBody() }
  const input = await io.readInput()
  const newlineIndex = input.indexOf('\n')
  const secret = (newlineIndex === -1 ? input : input.slice(0, newlineIndex)).replace(/\r$/, '')
  if (options.bodyFile !== undefined) return { secret, body: readText(io, options.bodyFile, '--body-file') }
  if (newlineIndex === -1)
    throw usageError('Standard input has no body behind the secret.', 'Give it with: --body-file FILE')
  return { secret, body: input.slice(newlineIndex + 1) }
}

async function findSecret({ io, connect }: Context, { app, envFile }: Options): Promise<string> {
  if (app !== undefined) {
    const { api } = connect()
    const id = await findApplication(api, app)
    return (await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id } })).data
      .webhookSecret
  }
  const values = envFile === undefined ? io.env : readEnvFile(io, envFile).values
  const secret = values.OTPD_WEBHOOK_SECRET
  if (secret) return secret
  throw usageError(
    envFile === undefined ? 'With which secret?' : `${envFile} has no OTPD_WEBHOOK_SECRET.`,
    'Give --app NAME, --env-file FILE or --secret-stdin, or set OTPD_WEBHOOK_SECRET.',
  )
}

function readText({ workingDirectory }: { workingDirectory: string }, path: string, flag: string) {
  try {
    return readFileSync(resolve(workingDirectory, path), 'utf8')
  } catch {
    throw usageError(`The file ${path} of ${flag} cannot be read.`)
  }
}
