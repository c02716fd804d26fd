import type { Command } from 'commander'
import type { LintedTemplate, LintOutcome, PreviewInput } from '../../src/delivery/text/template-lint.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import type { Output } from '../terminal/output.ts'
import type { RunCommand } from '../context.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { printable } from '../terminal/text.ts'

type ConfigFlag = { config?: string }
type PreviewOptions = ConfigFlag & {
  locale?: string
  appName?: string
  webotp?: string
  androidHash?: string
}

const addConfigFlag = (command: Command) =>
  command.option('--config <file>', 'the configuration file with templates of your own (OTPD_CONFIG)')

export function addTemplateCommands(program: Command, runCommand: RunCommand) {
  const template = program.command('template').alias('templates').description('the texts of messages')

  addConfigFlag(
    template
      .command('lint')
      .description('show encoding, length and SMS parts of every text, with a name of 20 characters'),
  )
    .addHelpText('after', examples('otpd template lint', 'otpd template lint --json'))
    .action((options: ConfigFlag, command: Command) =>
      runCommand(command, async ({ output }) => {
        const templates = await loadTemplates(options)
        const { lintTemplates } = await import('../../src/server/bundle.ts')
        const rows = lintTemplates(templates)
        output.printResult(JSON.stringify({ data: rows }), () => lintText(rows, output))
        const multipartRows = rows.filter(({ parts }) => parts > 1)
        for (const row of multipartRows) output.warn(`${row.locale} (${row.from}) takes ${row.parts} parts.`)
        return multipartRows.some(({ from }) => from === 'otpd') ? exitCodes.negative : exitCodes.done
      }),
    )

  addConfigFlag(template.command('preview').description('print a message as a phone would get it'))
    .option('--locale <tag>', 'its language, like pt-BR (en)')
    .option('--app-name <name>', "the application's name")
    .option('--webotp <host>', 'with the line that lets pages of this host fill in the code')
    .option('--android-hash <hash>', 'with the line that lets this Android app read it')
    .addHelpText(
      'after',
      examples(
        'otpd template preview --locale pt-BR --app-name Storefront',
        'otpd template preview --webotp example.com --android-hash FA+9qCX9VSu',
      ),
    )
    .action((options: PreviewOptions, command: Command) =>
      runCommand(command, async ({ output }) => {
        const { findInvalidField: faultyWish, previewMessage } = await import('../../src/server/bundle.ts')
        const previewInput = toPreviewInput(options)
        const invalidField = faultyWish(previewInput)
        if (invalidField !== undefined) throw usageError(fieldErrors[invalidField])
        const { size, ...message } = previewMessage(previewInput, await loadTemplates(options))
        output.printResult(JSON.stringify({ data: { ...message, ...size } }), () => message.text)
        const reason = size.encoding === 'UCS-2' ? ` because of ${sampleCharacters(size.foreign)}` : ''
        output.note(
          `${message.locale}, ${size.encoding}${reason}, ${size.units} of ${size.unitsMax} units, ${partsText(size.parts)}.`,
        )
        if (message.leftOut.length > 0)
          output.warn(`Left out for want of room: ${message.leftOut.join(' and ')}.`)
        if (size.parts > 1) output.warn(`This takes ${size.parts} parts, each of which costs a message.`)
      }),
    )
}

/** The operator's own templates, where this machine has a configuration. */
async function loadTemplates({ config }: ConfigFlag) {
  const loaded = await loadServerConfig({ config })
  return requireConfig(loaded, exitCodes.usage).templates
}

const toPreviewInput = ({ locale, appName, webotp, androidHash }: PreviewOptions): PreviewInput => ({
  ...(locale !== undefined && { locale }),
  ...(appName !== undefined && { applicationName: appName }),
  ...(webotp !== undefined && { webOtpDomain: webotp }),
  ...(androidHash !== undefined && { androidAppHash: androidHash }),
})

const fieldErrors: Record<keyof PreviewInput, string> = {
  locale: '--locale takes a language tag, like en or pt-BR.',
  applicationName: '--app-name takes a name.',
  webOtpDomain: '--webotp takes a host name, like example.com, without scheme, port and path.',
  androidAppHash: '--android-hash takes the 11 characters of the hash of an Android app.',
}

function lintText(rows: LintedTemplate[], { paint, formatTable }: Output) {
  const outcome = ({ parts, leftOut }: LintOutcome) => {
    if (parts > 1) return paint.yellow(partsText(parts))
    return leftOut.length === 0 ? 'whole' : `no ${leftOut.join(', ')}`
  }
  return formatTable(
    ['TEXT', 'LOCALE', 'FROM', 'CODING', 'UNITS', 'PARTS', '+WEBOTP', '+ANDROID', '+BOTH', 'WHY'],
    rows.map((row) => [
      row.template,
      row.locale,
      row.from,
      row.encoding,
      `${row.units}/${row.unitsMax}`,
      row.parts > 1 ? paint.yellow(String(row.parts)) : '1',
      outcome(row.withWebOtp),
      outcome(row.withAndroid),
      outcome(row.withBoth),
      sampleCharacters(row.foreign),
    ]),
  )
}

const partsText = (parts: number) => (parts === 1 ? '1 part' : `${parts} parts`)

/** A few of the characters that ask for UCS-2. */
const sampleCharacters = (foreign: string[]) => {
  const visible = foreign.filter((character) => printable(character) === character)
  return [...visible.slice(0, 3), ...(visible.length > 3 ? ['…'] : [])].join(' ')
}
