import type { Command } from 'commander'
import { examples } from '../examples.ts'
import { addListOptions, listQuery, noteMore, type ListOptions } from '../lists.ts'
import type { Output } from '../output.ts'
import type { Run } from '../program.ts'
import type { InboxItem } from '../resources.ts'
import { printable } from '../text.ts'

export function addInboxCommand(program: Command, run: Run) {
  addListOptions(program.command('inbox').description('codes that were kept here instead of sent'))
    .addHelpText('after', examples('otpd inbox', 'otpd inbox --limit 1 --json'))
    .action((options: ListOptions, command: Command) =>
      run(command, async ({ connect, output }) => {
        const query = listQuery(options)
        const found = await connect().api.asDeveloper('GET', '/v1/inbox', { query })
        output.answer(found.body, () => inboxText(found.data, output))
        noteMore(output, found)
      }),
    )
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
