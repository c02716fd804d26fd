import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import { readEnvFile } from '../client/credentials.ts'
import { durationMs, type Context } from '../context.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
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

/** Registers the verify command, which finds out why a receiver rejects a delivery. */
export function addVerifyCommand(webhook: CliCommand) {
  webhook
    .command('verify')
    .description('check the signature of a delivery and find what is wrong')
    .option('--app <id|name>', 'use the webhook secret of this application')
    .option('--env-file <path>', 'use OTPD_WEBHOOK_SECRET from this file (default: the environment variable)')
    .option('--secret-stdin', 'use the first line of standard input as the secret')
    .option('--header-file <path>', 'headers, one per line, as curl -D writes them')
    .option('--id <id>', 'value of the webhook-id header')
    .option('--timestamp <seconds>', 'value of the webhook-timestamp header')
    .option('--signature <signature>', 'value of the webhook-signature header')
    .option('--body-file <path>', 'request body (default: standard input)')
    .option('--tolerance <time>', 'maximum age (default 5m)')
    .examples(
      'otpd webhook verify --app web --header-file delivery.headers < delivery.json',
      'otpd webhook verify --env-file .env.otpd --header-file delivery.headers --body-file delivery.json',
    )
    .run(async (context, options: Options) => {
      const { io, output } = context
      const toleranceMs = durationMs(options.tolerance ?? '5m', '--tolerance')
      const message = { ...readHeaders(context, options), ...(await readSecretAndBody(context, options)) }
      const checks = checkWebhook(message, { nowMs: io.now(), toleranceMs })
      const valid = checks.every(({ ok }) => ok)
      const faults = checks
        .filter(({ ok }) => !ok)
        .map(({ part, message: fault }) => ({ part, message: fault }))
      output.printData({ valid, faults }, () => checksText(checks, valid, context))
      return valid ? exitCodes.done : exitCodes.negative
    })
}

function checksText(checks: Check[], valid: boolean, { output: { done, paint } }: Context) {
  const lines = checks.map(({ part, ok: isOk, message }) =>
    [isOk ? paint.green('  ✓') : paint.red('  ✗'), part.padEnd(9), printable(message)].join(' '),
  )
  const title = valid
    ? done('The delivery is genuine.')
    : `${paint.red('✗')} A receiver would reject this delivery.`
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
        headerFile === undefined ? `${flagName} is missing.` : `${headerFile} has no ${name} header.`,
        'Pass --header-file FILE, or all of --id, --timestamp and --signature.',
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
  if (sources.length > 1) throw usageError('Use only one of --app, --env-file and --secret-stdin.')
  const readBody = async () =>
    options.bodyFile === undefined ? await io.readInput() : readText(io, options.bodyFile, '--body-file')
  if (options.secretStdin !== true)
    return { secret: await findSecret(context, options), body: await readBody() }
  const input = await io.readInput()
  const newlineIndex = input.indexOf('\n')
  const secret = (newlineIndex === -1 ? input : input.slice(0, newlineIndex)).replace(/\r$/, '')
  if (options.bodyFile !== undefined) return { secret, body: readText(io, options.bodyFile, '--body-file') }
  if (newlineIndex === -1)
    throw usageError('Standard input has no body after the secret.', 'Pass the body with: --body-file FILE')
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
    envFile === undefined ? 'No webhook secret given.' : `${envFile} has no OTPD_WEBHOOK_SECRET.`,
    'Pass --app NAME, --env-file FILE or --secret-stdin, or set OTPD_WEBHOOK_SECRET.',
  )
}

function readText({ workingDirectory }: { workingDirectory: string }, path: string, flag: string) {
  try {
    return readFileSync(resolve(workingDirectory, path), 'utf8')
  } catch {
    throw usageError(`Cannot read the file ${path} given with ${flag}.`)
  }
}
