import { applicationFields } from '../../src/shared/application-fields.ts'
import { keysOf, type FieldDefinition } from '../../src/shared/fields.ts'
import type { Application } from './resources.ts'
import type { Output } from '../terminal/output.ts'
import { formatSetting } from '../terminal/setting-text.ts'
import { namedId, printable, type Paint } from '../terminal/text.ts'
import type { Environment } from '../../src/shared/otp-values.ts'

/** Highlights `live`, the environment that costs money and reaches people. */
export const paintEnvironment = (environment: Environment, paint: Paint) =>
  environment === 'live' ? paint.magenta('live') : 'test'

/** Formats the status of an application, with a symbol and colour. */
export const paintStatus = (status: Application['status'], paint: Paint) =>
  status === 'active' ? paint.green('● active') : paint.red('○ disabled')

/** Formats one application. The server sends only previews of its secrets. */
export function applicationText(
  app: Application,
  { details, paint, formatTime }: Output,
  projectName?: string,
) {
  const rotatedSuffix = (isoTime: string | undefined) =>
    isoTime === undefined ? '' : paint.dim(`  rotated ${formatTime(isoTime)}`)
  // Short labels keep every line within 80 columns.
  return details(paint.bold(printable(app.name)), [
    ['Id', app.id],
    ['Project', namedId(app.projectId, projectName)],
    ['Environment', paintEnvironment(app.environment, paint)],
    ['Status', paintStatus(app.status, paint)],
    ['Client ID', app.clientId],
    ['Secret', app.clientSecretPreview + rotatedSuffix(app.clientSecretRotatedAt)],
    ['API key', app.apiKeyPreview + rotatedSuffix(app.apiKeyRotatedAt)],
    ['Webhook', `otpd app webhook-secret ${app.id}${rotatedSuffix(app.webhookSecretRotatedAt)}`],
    ...keysOf(applicationFields).map((name) => settingFact(applicationFields[name], app[name])),
    ['Created', formatTime(app.createdAt)],
    ['Updated', formatTime(app.updatedAt)],
  ])
}

const settingFact = (
  field: FieldDefinition,
  value: Parameters<typeof formatSetting>[1],
): [string, string | null] => [field.terminal.label, formatSetting(field, value)]
