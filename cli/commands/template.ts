import type { CliCommand } from './command.ts'
import type { Config } from '../../src/config/config.ts'
import type { LintedTemplate, LintOutcome, PreviewInput } from '../../src/delivery/text/template-lint.ts'
import { collect, readSomeVariables } from '../terminal/pairs.ts'
import { partsText, sampleCharacters, templateSizesText, warnOfParts } from '../client/app-templates.ts'
import { findApplication } from '../client/find.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import type { Context } from '../context.ts'
import { addAppTemplateCommands } from './app-templates.ts'
import { loadServerConfig, requireConfig } from '../host/config.ts'
import { printable } from '../terminal/text.ts'

type ConfigFlag = { config?: string }
type LintOptions = ConfigFlag & { app?: string }
type PreviewOptions = ConfigFlag & {
  app?: string
  template?: string
  variable?: string[]
  locale?: string
  appName?: string
  webotp?: string
  androidHash?: string
}

const addConfigFlag = (command: CliCommand) =>
  command.option('--config <file>', 'configuration file with your own templates (OTPD_CONFIG)')

/** Registers the commands for message templates. */
export function addTemplateCommands(program: CliCommand) {
  const template = program.command('template').alias('templates').description('message texts')

  addConfigFlag(
    template
      .command('lint')
      .description('show encoding, length and SMS parts of every text, for an app name of 20 characters'),
  )
    .option('--app <id|name>', 'the templates of this application instead')
    .examples('otpd template lint', 'otpd template lint --app web', 'otpd template lint --json')
    .run(async (context, options: LintOptions) => {
      const { output } = context
      if (options.app !== undefined) return await lintAppTemplates(context, options.app)
      const { templates } = await loadConfig(context.io, options)
      const { lintTemplates } = await import('../../src/server/bundle.ts')
      const rows = lintTemplates(templates)
      output.printData(rows, () => lintText(rows, output))
      const multipartRows = rows.filter(({ parts }) => parts > 1)
      for (const row of multipartRows)
        output.warn(`${row.locale} (${row.from}) needs ${row.parts} SMS parts.`)
      return multipartRows.some(({ from }) => from === 'otpd') ? exitCodes.negative : exitCodes.done
    })

  addConfigFlag(template.command('preview').description('print a message as a phone would receive it'))
    .option('--locale <tag>', 'language, like pt-BR (default en)')
    .option('--app-name <name>', "the application's name")
    .option('--app <id|name>', 'application whose template to print')
    .option('--template <name>', 'template of the application')
    .option('--variable <name=value>', 'variable of a payment, like amount=9.99; repeat it', collect)
    .option('--webotp <host>', 'add the line that lets pages of this host autofill the code')
    .option('--android-hash <hash>', 'add the line that lets this Android app read the message')
    .examples(
      'otpd template preview --locale pt-BR --app-name Storefront',
      'otpd template preview --webotp example.com --android-hash FA+9qCX9VSu',
      "otpd template preview --app web --template payment --variable payee='Ada Books'",
    )
    .run(async (context, options: PreviewOptions) => {
      const { output } = context
      const { findInvalidField, previewMessage } = await import('../../src/server/bundle.ts')
      const previewInput = toPreviewInput(options)
      const invalidField = findInvalidField(previewInput)
      if (invalidField !== undefined) throw usageError(fieldErrors[invalidField])
      const { templates, delivery } = await loadConfig(context.io, options)
      const isOfApplication = options.app !== undefined || options.template !== undefined
      const { size, ...message } = isOfApplication
        ? await previewAppTemplate(context, options, previewInput)
        : previewMessage(previewInput, templates)
      output.printData({ ...message, ...size }, () => message.text)
      const reason = size.encoding === 'UCS-2' ? ` because of ${sampleCharacters(size.foreign)}` : ''
      output.note(
        `${message.locale}, ${size.encoding}${reason}, ${size.units} of ${size.unitsMax} units, ${partsText(size.parts)}.`,
      )
      await noteProviderTexts(output, delivery)
      const { locale } = options
      if (locale !== undefined && !isSameLanguage(locale, message.locale))
        output.warn(
          `There is no text for ${printable(locale)}, so codes are sent in ${message.locale}. See: otpd template lint`,
        )
      if (message.leftOut.length > 0)
        output.warn(`Left out because they do not fit into one SMS: ${message.leftOut.join(' and ')}.`)
      if (size.parts > 1)
        output.warn(`This needs ${size.parts} SMS parts, and each part is charged as one message.`)
    })

  addAppTemplateCommands(template)
}

/** Shows the sizes of an application's templates. */
async function lintAppTemplates({ api, output }: Context, app: string) {
  const params = { id: await findApplication(api, app) }
  const { body, data } = await api.asDeveloper('GET', '/v1/applications/:id/templates', { params })
  output.printResult(body, () => templateSizesText(data, output))
  warnOfParts(output, data)
  return exitCodes.done
}

/** Renders a message of an application's template, with the settings of the application. @throws usage error */
async function previewAppTemplate({ connect }: Context, options: PreviewOptions, input: PreviewInput) {
  const { app, template: name, variable = [] } = options
  if (app === undefined || name === undefined)
    throw usageError(
      '--app and --template belong together.',
      'Pass both, or none for the texts of the server.',
    )
  const { findVariableFaults, previewTemplate } = await import('../../src/server/bundle.ts')
  const variables = { amount: '9.99 EUR', payee: 'Northwind Trading Co', ...readSomeVariables(variable) }
  const [fault] = findVariableFaults(variables)
  if (fault) throw usageError(`--variable ${fault.name}: ${fault.message}`)
  const { api } = connect()
  const id = await findApplication(api, app)
  const application = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
  const path = '/v1/applications/:id/templates/:name'
  const { data } = await api.asDeveloper('GET', path, { params: { id, name } })
  const { defaultLocale, webOtpDomain, androidAppHash } = application.data
  const settings = {
    applicationName: application.data.name,
    ...(defaultLocale !== null && { locale: defaultLocale }),
    ...(webOtpDomain !== null && { webOtpDomain }),
    ...(androidAppHash !== null && { androidAppHash }),
  }
  const texts = Object.entries(data.texts).map(([locale, text]) => ({ locale, text }))
  return previewTemplate(texts, { ...settings, ...input }, variables)
}

/** Whether a text is in the language that was asked for, perhaps of another region: `pt` for `pt-BR`. */
const isSameLanguage = (asked: string, found: string) =>
  asked.split('-')[0]?.toLowerCase() === found.split('-')[0]?.toLowerCase()

/** Loads the configuration, for the operator's own templates and the providers that have their own texts. */
const loadConfig = async (io: Io, { config }: ConfigFlag) =>
  requireConfig(await loadServerConfig(io, { config }), exitCodes.usage)

/** Notes the providers that never send this text. */
async function noteProviderTexts(output: Output, { providers }: Config['delivery']) {
  const { channelsWithProviderText } = await import('../../src/server/bundle.ts')
  for (const { name, kind } of providers) {
    const channels = channelsWithProviderText(kind)
    if (channels.length > 0)
      output.note(`${printable(name)} (${kind}) writes its own text for ${channels.join(', ')}.`)
  }
}

const toPreviewInput = ({ locale, appName, webotp, androidHash }: PreviewOptions): PreviewInput => ({
  ...(locale !== undefined && { locale }),
  ...(appName !== undefined && { applicationName: appName }),
  ...(webotp !== undefined && { webOtpDomain: webotp }),
  ...(androidHash !== undefined && { androidAppHash: androidHash }),
})

const fieldErrors: Record<keyof PreviewInput, string> = {
  locale: '--locale must be a language tag, like en or pt-BR.',
  applicationName: '--app-name must be the name of an application.',
  webOtpDomain: '--webotp must be a host name like example.com, without scheme, port and path.',
  androidAppHash: "--android-hash must be the 11 characters of an Android app's hash.",
}

function lintText(rows: LintedTemplate[], { paint, formatTable }: Output) {
  const outcome = ({ parts, leftOut }: LintOutcome) => {
    if (parts > 1) return paint.yellow(partsText(parts))
    return leftOut.length === 0 ? 'ok' : `no ${leftOut.join(', ')}`
  }
  return formatTable(
    ['TEXT', 'LOCALE', 'SOURCE', 'ENCODING', 'UNITS', 'PARTS', '+WEBOTP', '+ANDROID', '+BOTH', 'UCS-2'],
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
