import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import { findApplication } from '../client/find.ts'
import { logoText, readLogo } from '../client/logo-file.ts'
import type { Route } from '../client/routes.ts'
import type { ApplicationPage } from '../client/resources.ts'
import { usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'
import { printable } from '../terminal/text.ts'
import { addFieldOptions, nullableOption, readFields, type FieldOptions } from './field-options.ts'

type PageChanges = Route<'PATCH', '/v1/applications/:id/page'>['body']
type PageOptions = { on?: boolean; off?: boolean; logo?: string }

const changeOptions: FieldOptions<Omit<PageChanges, 'enabled' | 'logo'>> = {
  returnOrigins: {
    flags: '--return-origin <origin>',
    help: 'where the page may return to, like https://shop.example; repeatable, replaces the earlier ones',
    isRepeatable: true,
    parse: (texts: readonly string[]) => [...texts],
  },
  name: nullableOption('-n, --name <name>', 'name in the header, instead of that of the application'),
  colour: nullableOption('--colour <#rrggbb>', 'colour of the buttons'),
}

/** Registers `otpd app page`. */
export function addAppPageCommand(app: CliCommand) {
  addFieldOptions(app.command('page'), changeOptions)
    .argument('<app>', 'id or name of the application')
    .description('show or set up its ready page, where users verify their phone')
    .option('--on', 'turn the page on')
    .option('--off', 'turn the page off; open links are refused at once')
    .option('--logo <file>', "PNG, JPEG, GIF or WebP image of less than 24 KiB; '' removes it")
    .examples(
      'otpd app page web',
      'otpd app page web --on --return-origin https://shop.example',
      "otpd app page web --name 'The Shop' --colour '#0055cc' --logo shop.png",
    )
    .run(async ({ connect, io, output }, idOrName: string, options: PageOptions) => {
      const body = readPageChanges(options, io.workingDirectory)
      const { api } = connect()
      const id = await findApplication(api, idOrName)
      const params = { id }
      const isChange = Object.keys(body).length > 0
      const response = isChange
        ? await api.asDeveloper('PATCH', '/v1/applications/:id/page', { params, body })
        : await api.asDeveloper('GET', '/v1/applications/:id/page', { params })
      const title = isChange ? [output.done('Page updated')] : []
      output.printResult(response.body, () => [...title, pageText(response.data, output)].join('\n'))
      if (response.data.enabled)
        output.suggestNext('otpd otp session create --return-url URL --env-file FILE')
      else output.suggestNext(`otpd app page ${id} --on --return-origin https://YOUR.SITE`)
    })
}

function readPageChanges(options: PageOptions, folder: string): PageChanges {
  const { on, off, logo } = options
  if (on && off) throw usageError('--on and --off exclude each other.', 'Pass one of them.')
  const changes: PageChanges = readFields(options, changeOptions)
  if (on || off) changes.enabled = on === true
  if (logo !== undefined) changes.logo = logo === '' ? null : readLogo(resolve(folder, logo))
  return changes
}

function pageText(page: ApplicationPage, { formatFacts, paint }: Output): string {
  return formatFacts([
    ['Page', page.enabled ? paint.green('● on') : paint.red('○ off')],
    ['Returns to', page.returnOrigins.length === 0 ? null : page.returnOrigins.map(printable).join(', ')],
    ['Name', page.name === null ? 'that of the application' : printable(page.name)],
    ['Colour', page.colour],
    ['Logo', page.logo && logoText(page.logo)],
  ])
}
