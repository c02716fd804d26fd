import type { CliCommand } from './command.ts'
import { reasonText } from '../client/choice-text.ts'
import { formatUnitCost, savedText } from '../client/costs.ts'
import { findOtpRequest } from '../client/find.ts'
import { channelName, costText, outcomeText, reasonWords } from '../client/log-lines.ts'
import type { LogEntry, RouteState } from '../client/resources.ts'
import type { Output } from '../terminal/output.ts'
import { kept, optional } from '../terminal/table.ts'
import { printable } from '../terminal/text.ts'

/** Registers the commands that show which providers messages take, and why. */
export function addRoutesCommands(program: CliCommand) {
  const routes = program
    .command('routes')
    .description('show which provider a message would take, by country, and why')
    .examples('otpd routes', 'otpd routes --json', 'otpd routes explain "$REQUEST_ID"')
    .run(async ({ api, output }) => {
      const { body, data } = await api.asDeveloper('GET', '/v1/routes')
      output.printResult(body, () => routesText(data, output))
    })

  routes
    .command('explain')
    .argument('<request-id>', 'request id from otp send, otp_…')
    .description('show how the provider of each message of a code was chosen')
    .examples('otpd routes explain "$REQUEST_ID"')
    .run(async ({ api, output }, id: string) => {
      const call = { params: { id: await findOtpRequest(api, id) } }
      const { data } = await api.asDeveloper('GET', '/v1/otp/:id/events', call)
      const attempts = data.filter(({ type }) => type === 'delivery.attempted')
      output.printData(attempts, () => explainText(attempts, output))
    })
}

function routesText(rows: RouteState[], { formatTable, paint }: Output): string {
  if (rows.length === 0)
    return 'No codes from providers yet: countries appear once some are verified or expire.'
  const table = formatTable(
    [
      'COUNTRY',
      optional('CHANNEL'),
      optional('STRATEGY'),
      kept('PROVIDER'),
      kept('PRICE'),
      kept('CONVERSION'),
      kept('CODES'),
      'PER VERIFIED',
      'STATE',
    ],
    rows.flatMap(({ country, channel, strategy, providers }) =>
      providers.map((one, index) => [
        index === 0 ? printable(country) : '',
        index === 0 ? channelName(channel) : '',
        index === 0 ? strategy : '',
        index === 0 ? paint.bold(printable(one.provider)) : printable(one.provider),
        one.price ?? '-',
        `${Math.round(one.conversion)}%`,
        String(one.samples),
        formatUnitCost(one.costPerVerified),
        stateText(one, paint),
      ]),
    ),
  )
  return [table, ...savedLines(rows).map((line) => `\n${line}`)].join('\n')
}

const stateText = ({ circuit, silent }: RouteState['providers'][number], paint: Output['paint']) =>
  circuit === 'open' ? paint.red('circuit open') : silent ? paint.yellow('silent') : ''

/** Sums up what strategies saved; no line if no route has one, or too little is known. */
export function savedLines(rows: readonly RouteState[]): string[] {
  const known = rows.filter(({ saved }) => saved !== null)
  const [first] = known
  if (!first) return []
  const sum = known.reduce((total, { saved }) => total + Number(saved), 0)
  return [
    `Your messages of 30 days: strategies ${savedText(sum, first.currency)}, compared with the fixed order.`,
  ]
}

function explainText(attempts: LogEntry[], { formatTable, clockTime, clockHeading, paint }: Output): string {
  if (attempts.length === 0) return 'No provider was asked: the code is in the inbox, or was not sent.'
  const blocks = attempts.map((attempt) => {
    const { at, channel = '', provider = '', error, choice } = attempt
    const cost = costText(attempt)
    const reason = error ? ` (${reasonWords(error)})` : ''
    const title = `${clockTime(at)}  ${channelName(channel)} via ${printable(provider)}: ${outcomeText(attempt)}${reason}${cost && `, ${cost}`}`
    if (!choice) return `${paint.bold(title)}\nNo strategy chose: it follows the order of the route.`
    const table = formatTable(
      [kept('PROVIDER'), kept('PRICE'), kept('CONVERSION'), kept('CODES'), 'PER VERIFIED'],
      choice.considered.map(({ provider: name, price, conversion, samples }) => [
        printable(name),
        price ?? '-',
        `${conversion}%`,
        String(samples),
        price === null ? '-' : formatUnitCost((Number(price) / conversion) * 100),
      ]),
    )
    const chosen = `Strategy ${choice.strategy}: ${reasonText(choice.strategy, choice.reason)}.`
    return `${paint.bold(title)}\n${chosen}\n\n${table}`
  })
  return [paint.dim(clockHeading('TIME')), ...blocks].join('\n\n')
}
