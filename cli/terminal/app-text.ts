import type { Application } from '../client/resources.ts'
import type { Output } from './output.ts'
import { facts, printable, remaining, type Paint } from './text.ts'

/** Live costs money and reaches people, so it is the one that stands out. */
export const paintEnvironment = (environment: 'live' | 'test', paint: Paint) =>
  environment === 'live' ? paint.magenta('live') : 'test'

export const paintStatus = (status: Application['status'], paint: Paint) =>
  status === 'active' ? paint.green('● active') : paint.red('○ disabled')

/** Everything about one application but its secrets, of which the server shows the ends only. */
export function applicationText(app: Application, { paint, when }: Output) {
  const rotated = (at: string | undefined) => (at === undefined ? '' : paint.dim(`  rotated ${when(at)}`))
  // Short labels keep every line within 80 columns.
  const lines: [string, string | null][] = [
    ['Id', app.id],
    ['Project', app.projectId],
    ['Environment', paintEnvironment(app.environment, paint)],
    ['Status', paintStatus(app.status, paint)],
    ['Client ID', app.clientId],
    ['Secret', app.clientSecretPreview + rotated(app.clientSecretRotatedAt)],
    ['API key', app.apiKeyPreview + rotated(app.apiKeyRotatedAt)],
    ['Webhook', `otpd app secret ${app.id}${rotated(app.webhookSecretRotatedAt)}`],
    ['Codes live', remaining(app.otpTtlSeconds * 1000)],
    ['Language', app.defaultLocale && printable(app.defaultLocale)],
    ['WebOTP', app.webOtpDomain && printable(app.webOtpDomain)],
    ['Android app', app.androidAppHash && printable(app.androidAppHash)],
    ['Created', when(app.createdAt)],
    ['Updated', when(app.updatedAt)],
  ]
  return [paint.bold(printable(app.name)), facts(lines, paint)].join('\n')
}
