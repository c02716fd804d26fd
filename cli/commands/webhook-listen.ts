import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { CliError, usageError, type ExitCode, isRetryable } from '../terminal/errors.ts'
import { wildcardKinds } from '../../src/shared/event-kinds.ts'
import { readEvents } from '../webhooks/read-events.ts'
import type { Api } from '../client/api.ts'
import { findApplication } from '../client/find.ts'
import { connectionText, followLog } from '../client/follow-log.ts'
import { whenAborted, runUntilInterrupted } from '../terminal/interrupt.ts'
import type { Io } from '../terminal/io.ts'
import type { LogEntry } from '../client/resources.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { localTime, printable } from '../terminal/text.ts'
import { buildWebhook, forward, parseTarget, type ForwardResult } from '../webhooks/forward.ts'
import { noteConnection } from './logs.ts'

type Options = { forwardTo?: string; app?: string; events?: string; printSecret?: true }

/** Maximum number of concurrent requests: a receiver paused at a breakpoint must not block later events. */
const inFlightMax = 10

/** Registers the listen command, which forwards events to a local server. */
export function addListenCommand(webhook: CliCommand) {
  webhook
    .command('listen')
    .description('forward events to a local server as signed webhooks, until Ctrl+C')
    .option('--forward-to <url>', 'local URL to post events to, like localhost:3000/hook')
    .option('--app <id|name>', 'only events of this application (default: all)')
    .option('--events <types>', 'only these event types, like otp.verified,otp.failed (default: all)')
    .option('--print-secret', 'print the webhook secret of --app, and exit')
    .examples(
      'otpd webhook listen --forward-to localhost:3000/hook --app web',
      'otpd webhook listen --forward-to http://localhost:3000/hook --events otp.verified,otp.failed',
      'otpd webhook listen --print-secret --app web',
    )
    .run((context, options: Options) =>
      options.printSecret === true ? printSecret(context, options) : listen(context, options),
    )
}

async function printSecret({ connect, output }: Context, { app }: Options) {
  if (app === undefined) throw usageError('--print-secret needs --app: each application has its own secret.')
  const { api } = connect()
  const id = await findApplication(api, app)
  const response = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id } })
  output.printResult(response.body, () => response.data.webhookSecret)
}

async function listen(context: Context, options: Options): Promise<ExitCode> {
  const { io, output, connect } = context
  if (options.forwardTo === undefined)
    throw usageError('--forward-to is required.', 'For example: --forward-to localhost:3000/hook')
  const target = parseTarget(options.forwardTo)
  const shown = Object.assign(new URL(target), { username: '', password: '' }).href
  const type = readEventTypes(options.events).join(',')
  const connection = connect()
  const { api, server } = connection
  const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
  await requireSecrets(api, appId)

  const { paint } = output
  const timeText = (isoTime: string) => paint.dim(localTime(isoTime).slice(11))
  const printForward = (entry: LogEntry, result: ForwardResult) =>
    output.printResult(JSON.stringify({ id: entry.id, type: entry.type, url: shown, ...result }), () =>
      [
        timeText(new Date(io.now()).toISOString()),
        isDelivered(result) ? paint.green('<--') : paint.red('<--'),
        isDelivered(result)
          ? String(result.statusCode)
          : `${result.statusCode ?? result.error} (not delivered)`,
        `POST ${shown} [${result.durationMs} ms]`,
        paint.dim(entry.id),
      ].join(' '),
    )

  async function forwardEntry(entry: LogEntry) {
    const webhook = await retryWhileUnavailable(io, () => buildWebhook(api, entry))
    if (webhook === null) return
    if (!output.json)
      output.printResult(
        '',
        () => `${timeText(entry.at)} ${paint.cyan('-->')} ${paint.bold(printable(entry.type))} ${entry.id}`,
      )
    printForward(entry, await forward(target, webhook, io.now()))
  }

  const scopeText = options.app === undefined ? 'all your applications' : printable(options.app)
  output.note(`Forwarding events of ${scopeText} at ${server.url} to ${shown}`)
  const application = options.app === undefined ? 'APP' : shellWord(options.app)
  output.note(`Signed with the application's webhook secret: otpd app webhook-secret ${application}`)
  const inFlight = new Set<Promise<void>>()
  const exitCode = await runUntilInterrupted(io, async (signal) => {
    const logEvents = followLog(context, connection, {
      query: { appId, type },
      signal,
      onConnected: () => output.note(output.paintError.dim('Waiting for events (Ctrl+C to quit)')),
    })
    try {
      for await (const event of logEvents) {
        if (event.kind !== 'entry') noteConnection(output, connectionText(event))
        else {
          const { entry } = event
          const task = forwardEntry(entry)
            .catch((error: unknown) =>
              printForward(entry, { statusCode: null, error: errorMessage(error), durationMs: 0 }),
            )
            .finally(() => inFlight.delete(task))
          inFlight.add(task)
          if (inFlight.size >= inFlightMax) await Promise.race([...inFlight, whenAborted(signal)])
        }
      }
    } finally {
      // After Ctrl+C, do not wait for requests in flight.
      if (!signal.aborted) await Promise.all(inFlight)
    }
  })
  return exitCode
}

/**
 * Reads a secret before there is an event to sign: a token without the scope for it could forward none.
 *
 * @param appId undefined: any application
 * @throws CliError of the API
 */
async function requireSecrets(api: Api, appId: string | undefined) {
  const id =
    appId ?? (await api.asDeveloper('GET', '/v1/applications', { query: { limit: '1' } })).data[0]?.id
  if (id !== undefined)
    await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id } })
}

const isDelivered = ({ statusCode }: ForwardResult) =>
  statusCode !== null && statusCode >= 200 && statusCode < 300

/** Retries for up to 10 s: the server may be restarting, and an event already received must not be lost. */
async function retryWhileUnavailable<T>(io: Io, request: () => Promise<T>): Promise<T> {
  for (let triesLeft = 20; ; triesLeft--) {
    try {
      return await request()
    } catch (error) {
      if (triesLeft === 0 || !(error instanceof CliError) || !isRetryable(error)) throw error
      await io.sleep(500)
    }
  }
}

const errorMessage = (error: unknown) =>
  error instanceof CliError ? error.message : error instanceof Error ? error.message : String(error)

/** Expands `*` to the event types that endpoints can receive: the log has more types. */
function readEventTypes(events: string | undefined): readonly string[] {
  const subscriptions = events === undefined ? [] : readEvents(events)
  return subscriptions.length === 0 || subscriptions.includes('*') ? wildcardKinds : subscriptions
}
