import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { usageError, type ExitCode } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import { followInbox } from '../client/follow-inbox.ts'
import { untilInterrupted } from '../terminal/interrupt.ts'
import { addListOptions, listQuery, noteMore, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import type { InboxItem } from '../client/resources.ts'
import { cut, lasting, printable, recentTime } from '../terminal/text.ts'
import { gapLine } from './logs.ts'

type Options = ListOptions & { tail?: true }

/** As many as the log shows before it goes on. */
const tailLimitDefault = '20'

export function addInboxCommand(program: Command, run: Run) {
  addListOptions(program.command('inbox').description('codes that were kept here instead of sent'))
    .option('-t, --tail', 'the last 20, and then what comes, until Ctrl-C')
    .addHelpText('after', examples('otpd inbox', 'otpd inbox --tail', 'otpd inbox --limit 1 --json'))
    .action((options: Options, command: Command) =>
      run(command, (context) => (options.tail ? tailInbox(context, options) : showInbox(context, options))),
    )
}

async function showInbox({ connect, output }: Context, options: ListOptions) {
  const query = listQuery(options)
  const found = await connect().api.asDeveloper('GET', '/v1/inbox', { query })
  output.answer(found.body, () => inboxText(found.data, output))
  noteMore(output, found)
}

async function tailInbox(context: Context, { limit = tailLimitDefault, cursor }: Options): Promise<ExitCode> {
  const { io, connect, output } = context
  if (cursor !== undefined) throw usageError('--tail begins with the newest messages and takes no --cursor.')
  const query = listQuery({ limit })
  const { api, server } = connect()
  const { data: known } = await api.asDeveloper('GET', '/v1/inbox', { query })
  const show = (item: InboxItem) => output.answer(JSON.stringify(item), () => messageLine(item, context))
  for (const item of known.toReversed()) show(item)
  output.note(output.paintError.dim(`Waiting for codes from ${server.url} (Ctrl+C to quit)`))
  return await untilInterrupted(io, async (signal) => {
    for await (const one of followInbox(context, api, { known, signal })) {
      if (one.kind === 'message') show(one.item)
      else if (one.kind === 'lost') output.note(gapLine(context, 'the connection was lost, trying again'))
      else output.note(gapLine(context, `back after ${lasting(one.afterMs)}, nothing is missing`))
    }
  })
}

/** One message a line: local time, phone, code, request. */
function messageLine({ sentAt, phone, code, requestId }: InboxItem, { io, output }: Context) {
  const { paint, columns } = output
  const cells = [
    paint.dim(recentTime(sentAt, io.now()).padEnd(8)),
    printable(phone).padEnd(14),
    code === null ? paint.dim('over  ') : paint.bold(code),
    paint.dim(requestId ?? ''),
  ]
  return cut(cells.join('  ').trimEnd(), columns() ?? Infinity, '…')
}

function inboxText(items: InboxItem[], { paint, table, when }: Output) {
  if (items.length === 0) return 'No messages yet. Send a code: otpd otp send PHONE --env-file FILE'
  const rows = items.map((item) => [
    when(item.sentAt),
    printable(item.phone),
    item.code === null ? paint.dim('over') : paint.bold(item.code),
    item.code === null ? '' : when(item.expiresAt),
    item.requestId ?? '',
  ])
  return table(['SENT', 'PHONE', 'CODE', 'EXPIRES', 'REQUEST'], rows)
}
