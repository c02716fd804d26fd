import { resolve } from 'node:path'
import type { AppCredentials } from '../../client/api.ts'
import { logoText, readLogo } from '../../client/logo-file.ts'
import type { Application, ApplicationPage } from '../../client/resources.ts'
import { required, showError, type Console, type Dialog, type DialogNeeds } from '../console-context.ts'

/** Opens the form for the ready page of an application, with the values that the server has. */
export function openPageDialog(console: Console, app: Application): void {
  const { api, openDialog } = console
  api.asDeveloper('GET', '/v1/applications/:id/page', { params: { id: app.id } }).then(
    ({ data }) => openDialog(pageDialog(console, app, data)),
    (error: unknown) => showError(console, error),
  )
}

/** Sets up the ready page of an application. */
export function pageDialog({ api, toast }: DialogNeeds, app: Application, page: ApplicationPage): Dialog {
  // The text of the field while the logo stays as it is.
  const ownLogo = page.logo === null ? '' : logoText(page.logo)
  return {
    kind: 'form',
    title: 'Ready page',
    lines: ['Users verify their phone there: see otpd docs ready-page.'],
    fields: [
      { name: 'enabled', label: 'page', choices: ['on', 'off'], initial: page.enabled ? 'on' : 'off' },
      { name: 'origins', label: 'returns to', initial: page.returnOrigins.join(' ') },
      { name: 'name', label: 'name', initial: page.name ?? '' },
      { name: 'colour', label: 'colour', initial: page.colour ?? '' },
      { name: 'logo', label: 'logo file', initial: ownLogo },
    ],
    verb: 'save',
    async submit({ enabled, origins = '', name = '', colour = '', logo = '' }) {
      const body = {
        enabled: enabled === 'on',
        returnOrigins: origins.split(/[\s,]+/).filter(Boolean),
        name: name || null,
        colour: colour || null,
        ...(logo !== ownLogo && { logo: logo === '' ? null : readLogo(resolve(logo)) }),
      }
      await api.asDeveloper('PATCH', '/v1/applications/:id/page', { params: { id: app.id }, body })
      toast(body.enabled ? 'page is on' : 'page is off', 'good')
    },
  }
}

/** Makes a link to the ready page, and copies it. @param origin to which the page may return */
export const linkDialog = (
  { api, copy }: Pick<Console, 'api' | 'copy'>,
  app: Pick<Application, 'name'>,
  credentials: AppCredentials,
  origin: string | undefined,
): Dialog => ({
  kind: 'form',
  title: `Link to the page of ${app.name}`,
  lines: [
    'One user verifies one phone there, within 15 minutes. The link is copied, and not shown again.',
    'Amount and payee of a payment need a template that shows them.',
  ],
  fields: [
    { name: 'returnUrl', label: 'returns to', initial: origin ? `${origin}/` : 'https://', check: required },
    { name: 'phone', label: 'only phone' },
    { name: 'template', label: 'template' },
    { name: 'amount', label: 'amount' },
    { name: 'payee', label: 'payee' },
  ],
  verb: 'make the link',
  async submit({ returnUrl = '', phone = '', template = '', amount = '', payee = '' }) {
    const body = {
      returnUrl,
      ...(phone !== '' && { phone }),
      ...(template !== '' && { template }),
      ...(amount + payee !== '' && { variables: { amount, payee } }),
    }
    const { data } = await api.asApplication('POST', '/v1/otp/sessions', credentials, { body })
    copy(data.url, 'link')
  },
})
