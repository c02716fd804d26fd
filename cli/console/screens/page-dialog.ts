import type { Application, ApplicationPage } from '../../client/resources.ts'
import { CliError } from '../../terminal/errors.ts'
import type { Console, Dialog } from '../console-context.ts'

type Needs = Pick<Console, 'api' | 'toast'>

/** Opens the form for the ready page of an application, with the values that the server has. */
export function openPageDialog(console: Console, app: Application): void {
  const { api, openDialog, toast, crash } = console
  api.asDeveloper('GET', '/v1/applications/:id/page', { params: { id: app.id } }).then(
    ({ data }) => openDialog(pageDialog(console, app, data)),
    (error: unknown) => (error instanceof CliError ? toast(error.message, 'bad') : crash(error)),
  )
}

/** Sets up the ready page of an application. Its logo is a file, which `otpd app page` takes. */
export const pageDialog = ({ api, toast }: Needs, app: Application, page: ApplicationPage): Dialog => ({
  kind: 'form',
  title: 'Ready page',
  lines: ['Users verify their phone there: see otpd docs ready-page.'],
  fields: [
    { name: 'enabled', label: 'page', choices: ['on', 'off'], initial: page.enabled ? 'on' : 'off' },
    { name: 'origins', label: 'returns to', initial: page.returnOrigins.join(' ') },
    { name: 'name', label: 'name', initial: page.name ?? '' },
    { name: 'colour', label: 'color', initial: page.colour ?? '' },
  ],
  verb: 'save',
  async submit({ enabled, origins = '', name = '', colour = '' }) {
    const body = {
      enabled: enabled === 'on',
      returnOrigins: origins.split(/[\s,]+/).filter(Boolean),
      name: name.trim() || null,
      colour: colour.trim() || null,
    }
    await api.asDeveloper('PATCH', '/v1/applications/:id/page', { params: { id: app.id }, body })
    toast(body.enabled ? 'page is on' : 'page is off', 'good')
  },
})
