import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import { isRecord } from '../../src/shared/json.ts'
import { templatesText, templateText, warnOfParts } from '../client/app-templates.ts'
import { findApplication } from '../client/find.ts'
import { usageError } from '../terminal/errors.ts'
import { collect, pairsParser } from '../terminal/pairs.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'

type AppOption = { app: string }
type SetOptions = AppOption & { text?: string[]; file?: string }

const appFlags = '--app <id|name>'
const readTextFlags = pairsParser('--text', "en='{code} is your code.'")

/** Registers the commands for the templates of an application, below `otpd template`. They call the server. */
export function addAppTemplateCommands(template: CliCommand) {
  const addCommand = (name: string, description: string, exampleLines: string[]) =>
    template
      .command(name)
      .description(description)
      .requiredOption(appFlags, 'application that has the template')
      .examples(...exampleLines)

  addCommand('list', 'list the templates of an application', ['otpd template list --app web'])
    .alias('ls')
    .run(async ({ api, output }, options: AppOption) => {
      const id = await findApplication(api, options.app)
      const response = await api.asDeveloper('GET', '/v1/applications/:id/templates', { params: { id } })
      const { body, data } = response
      const names = data.map(({ name }) => name)
      output.printResult(body, () => (data.length === 0 ? emptyText : templatesText(data, output)), names)
    })

  addCommand('get', 'show the texts of a template', ['otpd template get payment --app web'])
    .alias('show')
    .argument('<name>', 'name of the template')
    .run(async ({ api, output }, name: string, options: AppOption) => {
      const params = { id: await findApplication(api, options.app), name }
      const response = await api.asDeveloper('GET', '/v1/applications/:id/templates/:name', { params })
      output.printResult(response.body, () => templateText(response.data, output), [name])
    })

  addCommand('set', 'create a template, or replace all its texts', [
    "otpd template set login --app web --text en='{code} is your {app} login code.'",
    "otpd template set payment --app web --text en='Pay {amount} to {payee} with {code}.'",
    'otpd template set payment --app web --file payment.json',
  ])
    .argument('<name>', 'name of the template: lower-case letters, digits, hyphens and underscores')
    .option('--text <language=text>', 'text in a language, like en=…; repeat it for several', collect)
    .option('--file <path>', 'JSON file with the texts, like {"en": "…", "de": "…"}')
    .run(async ({ connect, io, output }, name: string, options: SetOptions) => {
      const texts = readTexts(options, io.workingDirectory)
      const { api } = connect()
      const params = { id: await findApplication(api, options.app), name }
      const call = { params, body: { texts } }
      const response = await api.asDeveloper('PUT', '/v1/applications/:id/templates/:name', call)
      const { body, data } = response
      const title = output.done('Template saved')
      output.printResult(body, () => `${title}\n${templateText(data, output)}`, [name])
      warnOfParts(output, [data])
      output.suggestNext(`otpd template preview --app ${shellWord(options.app)} --template ${name}`)
    })

  addCommand('delete', 'delete a template; codes that were sent keep their text', [
    'otpd template delete payment --app web',
  ])
    .alias('rm')
    .argument('<name>', 'name of the template')
    .run(async ({ api, output }, name: string, options: AppOption) => {
      const params = { id: await findApplication(api, options.app), name }
      const response = await api.asDeveloper('DELETE', '/v1/applications/:id/templates/:name', { params })
      const done = output.done(`template ${output.paint.bold(printable(name))} deleted`)
      output.printResult(response.body, () => done, [name])
    })
}

const emptyText = "No templates. Create one: otpd template set login --app APP --text en='…'"

/** Reads the texts of the flags and of the file. @throws usage error */
function readTexts({ text = [], file }: SetOptions, folder: string): Record<string, string> {
  const texts = { ...(file !== undefined && readTextFile(resolve(folder, file))), ...readTextFlags(text) }
  if (Object.keys(texts).length === 0)
    throw usageError('A template needs a text.', "Pass --text en='…', or --file with a JSON file.")
  return texts
}

function readTextFile(path: string): Record<string, string> {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const fault = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read'
    throw usageError(`The file of --file ${fault}: ${printable(path)}`)
  }
  const entries = isRecord(content) ? Object.entries(content) : []
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  if (!isRecord(content) || texts.length < entries.length)
    throw usageError('The file of --file must be an object like {"en": "…", "de": "…"}.')
  return Object.fromEntries(texts)
}
