import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { CliError, usageError, type ExitCode } from '../terminal/errors.ts'
import { eventKinds, readEvents } from '../webhooks/event-kinds.ts'
import { examples } from '../examples.ts'
import { findApplication } from '../client/find.ts'
import { followLog, isPassing } from '../client/follow-log.ts'
import { aborted, untilInterrupted } from '../terminal/interrupt.ts'
import type { Io } from '../terminal/io.ts'
import type { Run } from '../program.ts'
import type { LogEntry } from '../client/resources.ts'
import { lasting, localTime, printable } from '../terminal/text.ts'
import { buildWebhook, forward, readTarget, type Forwarded } from '../webhooks/forward.ts'
import { gapLine } from './logs.ts'

type Options = { forwardTo?: string; app?: string; events?: string; printSecret?: true }

/** How many may be on their way: a receiver that stands at a breakpoint holds up no others. */
const underWayMax = 10

export function addListenCommand(webhook: Command, run: Run) {
  webhook
    .command('listen')
    .description('bring events to a program on this machine, signed as webhooks, until Ctrl-C')
    .option('--forward-to <url>', 'where to post them, like localhost:3000/hook')
    .option('--app <id|name>', 'only of this application (of all)')
    .option('--events <kinds>', 'only these, like otp.verified,otp.failed (all)')
    .option('--print-secret', 'print the webhook secret that --app signs with, and end')
    .addHelpText(
      'after',
      examples(
        'otpd webhook listen --forward-to localhost:3000/hook --app web',
        'otpd webhook listen --forward-to http://localhost:3000/hook --events otp.verified,otp.failed',
        'otpd webhook listen --print-secret --app web',
      ),
    )
    .action((options: Options, command: Command) =>
      run(command, (context) =>
        options.printSecret === true ? printSecret(context, options) : listen(context, options),
      ),
    )
}

async function printSecret({ connect, output }: Context, { app }: Options) {
  if (app === undefined) throw usageError('Each application has a secret of its own: name one with --app.')
  const { api } = connect()
  const id = await findApplication(api, app)
  const found = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id } })
  output.answer(found.body, () => found.data.webhookSecret)
}

async function listen(context: Context, options: Options): Promise<ExitCode> {
  const { io, output, connect } = context
  if (options.forwardTo === undefined)
    throw usageError('Where to? Say it like this: --forward-to localhost:3000/hook')
  const target = readTarget(options.forwardTo)
  const type = readKinds(options.events).join(',')
  const connection = connect()
  const { api, server } = connection
  const appId = options.app === undefined ? undefined : await findApplication(api, options.app)

  const { paint } = output
  const time = (at: string) => paint.dim(localTime(at).slice(11))
  const show = (entry: LogEntry, sent: Forwarded) =>
    output.answer(JSON.stringify({ id: entry.id, type: entry.type, url: target.href, ...sent }), () =>
      [
        time(new Date(io.now()).toISOString()),
        isDelivered(sent) ? paint.green('<--') : paint.red('<--'),
        isDelivered(sent) ? String(sent.statusCode) : `${sent.statusCode ?? sent.error} (not delivered)`,
        `POST ${target.href} [${sent.durationMs} ms]`,
        paint.dim(entry.id),
      ].join(' '),
    )

  async function bring(entry: LogEntry) {
    const webhook = await patiently(io, () => buildWebhook(api, entry))
    if (webhook === null) return
    if (!output.json)
      output.answer(
        '',
        () => `${time(entry.at)} ${paint.cyan('-->')} ${paint.bold(printable(entry.type))} ${entry.id}`,
      )
    show(entry, await forward(target, webhook, io.now()))
  }

  const of = options.app === undefined ? 'all your applications' : printable(options.app)
  output.note(`Events of ${of} at ${server.url} go to ${target.href}`)
  const underWay = new Set<Promise<void>>()
  const exitCode = await untilInterrupted(io, async (signal) => {
    const following = followLog(context, connection, {
      query: { appId, type },
      signal,
      onConnected: () => output.note(output.paintError.dim('Waiting for events (Ctrl+C to quit)')),
    })
    try {
      for await (const one of following) {
        if (one.kind === 'lost') output.note(gapLine(context, `${one.why}, trying again`))
        else if (one.kind === 'back')
          output.note(gapLine(context, `back after ${lasting(one.afterMs)}, nothing is missing`))
        else {
          const { entry } = one
          const done = bring(entry)
            .catch((error: unknown) =>
              show(entry, { statusCode: null, error: sentenceOf(error), durationMs: 0 }),
            )
            .finally(() => underWay.delete(done))
          underWay.add(done)
          if (underWay.size >= underWayMax) await Promise.race([...underWay, aborted(signal)])
        }
      }
    } finally {
      // Ctrl-C waits for nobody.
      if (!signal.aborted) await Promise.all(underWay)
    }
  })
  return exitCode
}

const isDelivered = ({ statusCode }: Forwarded) =>
  statusCode !== null && statusCode >= 200 && statusCode < 300

/** A server that is being restarted is back in a moment, and what it told of is not to be lost. */
async function patiently<T>(io: Io, ask: () => Promise<T>): Promise<T> {
  for (let triesLeft = 20; ; triesLeft--) {
    try {
      return await ask()
    } catch (error) {
      if (triesLeft === 0 || !(error instanceof CliError) || !isPassing(error)) throw error
      await io.sleep(500)
    }
  }
}

const sentenceOf = (error: unknown) =>
  error instanceof CliError ? error.message : error instanceof Error ? error.message : String(error)

/** Written out: `*` would take in what no endpoint is told of. */
function readKinds(events: string | undefined): readonly string[] {
  const wanted = events === undefined ? [] : readEvents(events)
  return wanted.length === 0 || wanted.includes('*') ? eventKinds : wanted
}
