import { joinSecrets, toSid } from '../../src/shared/sids.ts'
import type { Api } from './api.ts'
import type { Application } from './resources.ts'

/** Systems whose clients can call this server, or hand it their codes. */
export const clientSystems = ['otpd', 'twilio-verify', 'camara', 'supabase'] as const
export type ClientSystem = (typeof clientSystems)[number]

/** Credentials of a client. The secrets are undefined where they are not known. */
type ClientCredentials = Pick<Application, 'id' | 'clientId'> & {
  clientSecret: string | undefined
  apiKey: string | undefined
  webhookSecret: string
}

/** Environment variables that the client of a system reads. A value that is not known is empty. */
export function clientVariables(
  system: ClientSystem,
  { id, clientId, clientSecret = '', apiKey = '', webhookSecret }: ClientCredentials,
  serverUrl: string,
): Record<string, string> {
  switch (system) {
    case 'otpd':
      return {
        OTPD_URL: serverUrl,
        OTPD_CLIENT_ID: clientId,
        OTPD_CLIENT_SECRET: clientSecret,
        OTPD_API_KEY: apiKey,
        OTPD_WEBHOOK_SECRET: webhookSecret,
      }
    case 'twilio-verify':
      return {
        OTPD_URL: serverUrl,
        TWILIO_ACCOUNT_SID: toSid('AC', id),
        TWILIO_AUTH_TOKEN: joinSecrets(clientSecret, apiKey),
        VERIFY_SERVICE_SID: toSid('VA', id),
      }
    case 'camara':
      return {
        CAMARA_API_ROOT: serverUrl,
        CAMARA_ISSUER: `${serverUrl}/camara`,
        CAMARA_CLIENT_ID: clientId,
        CAMARA_CLIENT_SECRET: joinSecrets(clientSecret, apiKey),
      }
    case 'supabase':
      return {
        GOTRUE_HOOK_SEND_SMS_ENABLED: 'true',
        GOTRUE_HOOK_SEND_SMS_URI: `${serverUrl}/v1/hooks/supabase/${id}`,
        GOTRUE_HOOK_SEND_SMS_SECRETS: `v1,${webhookSecret}`,
      }
  }
}

/** Says what a team that switches meets first: the limits of the plan, and the life of a code. */
export async function describeLimits(api: Api, { otpTtlSeconds }: Pick<Application, 'otpTtlSeconds'>) {
  const { data } = await api.asDeveloper('GET', '/v1/developer/me')
  const { sendPerMinute, verifyPerMinute } = data.limits
  const rate = (limit: number, noun: string) => (limit === 0 ? `any number of ${noun}` : `${limit} ${noun}`)
  return `Plan ${data.plan}: ${rate(sendPerMinute, 'sends')} and ${rate(verifyPerMinute, 'checks')} a minute. A code lives ${otpTtlSeconds} s.`
}

/** Formats `KEY=value` lines, with a comment after them. */
export const envLines = (values: Record<string, string>, comment: string) =>
  [...Object.entries(values).map(([key, value]) => `${key}=${value}`), `# ${comment}`].join('\n')
