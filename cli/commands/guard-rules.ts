import type { CliCommand } from './command.ts'
import { findApplication, findGuardRule, readApplicationNames, type Names } from '../client/find.ts'
import { describeWideRule, readEnd } from '../client/guard-rules.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { GuardListRule } from '../client/resources.ts'
import { confirm } from '../terminal/confirm.ts'
import type { Output } from '../terminal/output.ts'
import { countryFlags, countryHelp, type CountryOption } from './country-option.ts'
import { kept } from '../terminal/table.ts'
import { printable } from '../terminal/text.ts'

type RuleOptions = { for?: string; app?: string } & CountryOption

/** Registers the commands that allow and deny destinations and networks. They call the server. */
export function addGuardRuleCommands(guard: CliCommand) {
  const addRuleCommand = (effect: GuardListRule['effect'], description: string, exampleLines: string[]) =>
    guard
      .command(effect)
      .argument(
        '<value>',
        'phone, first digits like +882 or +1415*, country, IP address or CIDR of end users',
      )
      .description(description)
      .option('--for <time>', 'how long it applies, like 30m, 24h or 7d (default: until it is removed)')
      .option('--app <id|name>', 'only messages of this application (default: all of yours)')
      .option(countryFlags, countryHelp)
      .examples(...exampleLines)
      .run(async (context, value: string, options: RuleOptions) => {
        const { io, connect, output } = context
        const expiresAt = options.for === undefined ? undefined : readEnd(options.for, io.now())
        const { api } = connect()
        const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
        const { country } = options
        const question = describeWideRule(effect, value)
        if (question !== null)
          await confirm(context, {
            isReversible: true,
            find: async () => value,
            describe: async () => ({ question, name: value }),
          })
        const optional = {
          ...(country && { country }),
          ...(appId && { appId }),
          ...(expiresAt && { expiresAt }),
        }
        const body = { effect, value, ...optional }
        const response = await api.asDeveloper('POST', '/v1/guard/rules', { body })
        const { data } = response
        output.printResult(response.body, () => data.id)
        const end = data.expiresAt === null ? '' : ` until ${output.formatTime(data.expiresAt)}`
        const done = effect === 'allow' ? 'allowed' : 'denied'
        output.note(`${output.paintError.green('✓')} ${data.target} ${printable(data.value)} ${done}${end}`)
      })

  addRuleCommand('allow', 'let codes pass the allowances of the guard', [
    'otpd guard allow +14155550100 --for 24h --app web',
    'otpd guard allow +1415* --for 7d',
    "otpd guard allow '07700 900123' --country GB",
  ])
  addRuleCommand('deny', 'refuse codes to a destination, or from a network', [
    'otpd guard deny +882',
    'otpd guard deny 203.0.113.0/24 --for 24h',
  ])

  addListOptions(guard.command('rules').description('list your rules that allow and deny, newest first'))
    .examples('otpd guard rules', 'otpd guard rules --json')
    .run(async ({ api, output }, options: ListOptions) => {
      const page = await readList(options, (query) => api.asDeveloper('GET', '/v1/guard/rules', { query }))
      const hasApps = page.data.some(({ appId }) => appId !== null)
      const names = hasApps ? await readApplicationNames(api) : new Map<string, string>()
      printList(output, page, (rules) => rulesText(rules, names, output))
    })

  guard
    .command('remove')
    .alias('rm')
    .argument('<rule>', 'id or value of the rule')
    .description('remove a rule that allows or denies')
    .examples('otpd guard remove +882')
    .run(async ({ api, output }, idOrValue: string) => {
      const id = await findGuardRule(api, idOrValue)
      const response = await api.asDeveloper('DELETE', '/v1/guard/rules/:id', { params: { id } })
      output.printResult(response.body, () =>
        output.done(`rule ${output.paint.bold(printable(idOrValue))} removed`),
      )
    })
}

function rulesText(rules: GuardListRule[], names: Names, output: Output) {
  if (rules.length === 0) return 'No rules. Create one: otpd guard allow VALUE, otpd guard deny VALUE'
  return output.formatTable(
    [kept('RULE'), 'TARGET', kept('VALUE'), 'APPLICATION', output.timeHeading('EXPIRES'), 'ID'],
    rules.map(({ id, effect, target, value, appId, expiresAt }) => [
      effect,
      target,
      printable(value),
      appId === null ? 'all' : printable(names.get(appId) ?? appId),
      expiresAt === null ? 'never' : output.columnTime(expiresAt),
      id,
    ]),
  )
}
