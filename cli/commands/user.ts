import type { Command } from 'commander'
import { examples } from '../help.ts'
import { addListOptions, listQuery, printNextPageHint, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { RunCommand } from '../context.ts'
import type { User } from '../client/resources.ts'
import { formatFacts, printable } from '../terminal/text.ts'

/** Registers the commands for verified phones. */
export function addUserCommands(program: Command, runCommand: RunCommand) {
  const user = program.command('user').alias('users').description('verified phones')

  addListOptions(user.command('list').alias('ls').description('list verified phones, newest first'))
    .addHelpText('after', examples('otpd user list', 'otpd user list --limit 10 --json'))
    .action((options: ListOptions, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const query = listQuery(options)
        const response = await connect().api.asDeveloper('GET', '/v1/users', { query })
        output.printResult(response.body, () => listText(response.data, output))
        printNextPageHint(output, response)
      }),
    )

  user
    .command('get')
    .alias('show')
    .argument('<phone>', 'with country code, like +14155550100')
    .description('show when, how often and through which applications a phone was verified')
    .addHelpText('after', examples('otpd user get +14155550100'))
    .action((phoneNumber: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const params = { phoneNumber }
        const response = await connect().api.asDeveloper('GET', '/v1/users/:phoneNumber', { params })
        output.printResult(response.body, () => userText(response.data, output))
      }),
    )
}

function listText(users: User[], { formatTable, formatTime }: Output) {
  if (users.length === 0)
    return 'No phones verified yet. Send a code and verify it:\n  otpd otp send PHONE --env-file FILE'
  const rows = users.map((user) => [
    printable(user.phone),
    user.country ?? '',
    String(user.verificationCount),
    formatTime(user.lastVerifiedAt),
    String(user.applications.length),
    user.id,
  ])
  return formatTable(['PHONE', 'COUNTRY', 'COUNT', 'LAST', 'APPS', 'ID'], rows)
}

function userText(user: User, { paint, formatTime }: Output) {
  const lines: [string, string | null][] = [
    ['Id', user.id],
    ['Country', user.country],
    ['Verifications', String(user.verificationCount)],
    ['First', formatTime(user.firstVerifiedAt)],
    ['Last', formatTime(user.lastVerifiedAt)],
    ['Applications', user.applications.join(', ')],
  ]
  return [paint.bold(printable(user.phone)), formatFacts(lines, paint)].join('\n')
}
