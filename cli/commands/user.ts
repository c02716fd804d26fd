import type { Command } from 'commander'
import { examples } from '../examples.ts'
import { addListOptions, listQuery, noteMore, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import type { User } from '../client/resources.ts'
import { facts, printable } from '../terminal/text.ts'

export function addUserCommands(program: Command, run: Run) {
  const user = program.command('user').alias('users').description('the phones that were verified')

  addListOptions(user.command('list').alias('ls').description('list verified phones, newest first'))
    .addHelpText('after', examples('otpd user list', 'otpd user list --limit 10 --json'))
    .action((options: ListOptions, command: Command) =>
      run(command, async ({ connect, output }) => {
        const query = listQuery(options)
        const found = await connect().api.asDeveloper('GET', '/v1/users', { query })
        output.answer(found.body, () => listText(found.data, output))
        noteMore(output, found)
      }),
    )

  user
    .command('get')
    .alias('show')
    .argument('<phone>', 'with country code, like +14155550100')
    .description('show when, how often and by which applications a phone was verified')
    .addHelpText('after', examples('otpd user get +14155550100'))
    .action((phoneNumber: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const params = { phoneNumber }
        const found = await connect().api.asDeveloper('GET', '/v1/users/:phoneNumber', { params })
        output.answer(found.body, () => userText(found.data, output))
      }),
    )
}

const times = (count: number) => (count === 1 ? 'once' : `${count} times`)

function listText(users: User[], { table, when }: Output) {
  if (users.length === 0)
    return 'No phones verified yet. Send a code and verify it:\n  otpd otp send PHONE --env-file FILE'
  const rows = users.map((one) => [
    printable(one.phone),
    one.country ?? '',
    times(one.verificationCount),
    when(one.lastVerifiedAt),
    String(one.applications.length),
    one.id,
  ])
  return table(['PHONE', 'COUNTRY', 'VERIFIED', 'LAST', 'APPS', 'ID'], rows)
}

function userText(one: User, { paint, when }: Output) {
  const lines: [string, string | null][] = [
    ['Id', one.id],
    ['Country', one.country],
    ['Verified', times(one.verificationCount)],
    ['First', when(one.firstVerifiedAt)],
    ['Last', when(one.lastVerifiedAt)],
    ['By', one.applications.join(', ')],
  ]
  return [paint.bold(printable(one.phone)), facts(lines, paint)].join('\n')
}
