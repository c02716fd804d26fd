import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { usageError, type ExitCode } from '../terminal/errors.ts'
import { followInbox } from '../client/follow-inbox.ts'
import { connectionText } from '../client/follow-log.ts'
import { runUntilInterrupted } from '../terminal/interrupt.ts'
import { addListOptions, noteMorePages, readList, readPaging, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { InboxItem } from '../client/resources.ts'
import { kept, optional } from '../terminal/table.ts'
import { truncate, pad, printable, recentTime, timeZone } from '../terminal/text.ts'
import { followAlias, noteConnection } from './logs.ts'

type Options = ListOptions & { tail?: true; follow?: true }

/** As many as `otpd logs --tail` shows first. */
const tailLimitDefault = '20'

/** Registers the inbox command. */
export function addInboxCommand(program: CliCommand) {
  addListOptions(
    program.command('inbox').description('show codes that were kept in the inbox instead of sent'),
  )
    .option('-t, --tail', 'show the last 20, then follow new ones until Ctrl+C')
    .addOption(followAlias())
    .examples('otpd inbox', 'otpd inbox --tail', 'otpd inbox --limit 1 --json')
    .run((context, options: Options) =>
      (options.tail ?? options.follow) ? tailInbox(context, options) : showInbox(context, options),
    )
}

async function showInbox({ api, output }: Context, options: ListOptions) {
  const page = await readList(options, (query) => api.asDeveloper('GET', '/v1/inbox', { query }))
  output.printResult(page.body, () => inboxText(page.data, output))
  noteMorePages(output, page)
}

async function tailInbox(context: Context, { limit = tailLimitDefault, cursor }: Options): Promise<ExitCode> {
  const { io, connect, output } = context
  if (cursor !== undefined)
    throw usageError('--tail starts at the newest messages and cannot be combined with --cursor.')
  const query = readPaging({ limit })
  const { api, server } = connect()
  const { data: recentItems } = await api.asDeveloper('GET', '/v1/inbox', { query })
  const printItem = (item: InboxItem) =>
    output.printResult(JSON.stringify(item), () => messageLine(item, context))
  if (!output.json) output.printResult('', () => tailHeading(context))
  for (const item of recentItems.toReversed()) printItem(item)
  output.note(output.paintError.dim(`Waiting for codes from ${server.url} (Ctrl+C to quit)`))
  return await runUntilInterrupted(io, async (signal) => {
    for await (const event of followInbox(io, api, { recentItems, signal })) {
      if (event.kind === 'message') printItem(event.item)
      else noteConnection(output, connectionText(event, 'messages'))
    }
  })
}

/** Formats a message as one line: phone, code, local time, request. */
function messageLine({ sentAt, phone, code, requestId }: InboxItem, { io, output }: Context) {
  const { paint } = output
  const codeText = code === null ? paint.dim('used/expired') : paint.bold(code)
  return tailLine(
    [printable(phone), codeText, recentTime(sentAt, io.now()), paint.dim(requestId ?? '')],
    output,
  )
}

const tailHeading = ({ io, output }: Context) =>
  output.paint.dim(tailLine(['PHONE', 'CODE', `SENT (${timeZone(io.now())})`, 'REQUEST'], output))

const tailWidths = [16, 12, 11, 0]

const tailLine = (cells: string[], { columns }: Output) =>
  truncate(
    cells
      .map((cell, index) => pad(cell, tailWidths[index] ?? 0))
      .join('  ')
      .trimEnd(),
    columns() ?? Infinity,
    '…',
  )

function inboxText(items: InboxItem[], { paint, formatTable, columnTime, timeHeading }: Output) {
  if (items.length === 0) return 'No messages yet. Send a code: otpd otp send PHONE --env-file FILE'
  const rows = items.map((item) => [
    printable(item.phone),
    item.code === null ? paint.dim('used/expired') : paint.bold(item.code),
    columnTime(item.sentAt),
    item.code === null ? '' : columnTime(item.expiresAt),
    item.requestId ?? '',
  ])
  return formatTable(
    [kept('PHONE'), kept('CODE'), optional(timeHeading('SENT')), optional(timeHeading('EXPIRES')), 'REQUEST'],
    rows,
  )
}
