import { isIP } from 'node:net'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { ServiceError } from '../../domain/model/errors.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { relayedCodePattern, type RelayInput } from '../../domain/otp/relay-once.ts'
import type { OtpRelay } from '../../domain/otp/relay.ts'
import { isRecord, parseJson } from '../../shared/json.ts'
import { sendFields } from '../field-schemas.ts'
import { isSignedBy } from '../hook-signature.ts'
import { idParams } from '../schemas.ts'
import type { ReadIdempotency } from '../idempotency.ts'
import { readText } from '../json-body.ts'

/** Statuses that supabase/auth passes on to its client, by the code of the refusal. */
const hookStatuses: Readonly<Partial<Record<ServiceError['code'], number>>> = {
  INVALID_ARGUMENT: 400,
  INVALID_PHONE_NUMBER: 400,
  DESTINATION_BLOCKED: 403,
  FORBIDDEN: 403,
  CONFLICT: 429,
  RATE_LIMITED: 429,
  DELIVERY_FAILED: 502,
}

/**
 * The "send SMS" hook of supabase/auth, signed with the webhook secret of the application. It reads a refusal only from a
 * response of 200; any other status becomes 500 there. It has a budget of five seconds.
 */
export function supabaseHookRoute(services: {
  appAuth: AppAuth
  relay: OtpRelay
  readIdempotency: ReadIdempotency
  /** Wall clock, comparable with that of the caller. */
  wall: Clock
}) {
  const { appAuth, relay, wall } = services
  return new Elysia({ prefix: '/v1/hooks/supabase' }).post(
    '/:id',
    async ({ params, request }) => {
      const headers = Object.fromEntries(request.headers)
      const body = await readText(request)
      const application = await appAuth.authenticateSigned(params.id, (secret) =>
        isSignedBy(secret, headers, body, wall.now()),
      )
      try {
        if ('refused' in application) throw application.refused
        // A replay has the same id; its own repeats have new ones.
        const key = { 'idempotency-key': headers['webhook-id'] }
        const scope = services.readIdempotency(key, application.id, 'POST /v1/hooks/supabase', '')
        await relay.deliver(application, readInput(body), scope)
        return {}
      } catch (error) {
        const status = error instanceof ServiceError ? hookStatuses[error.code] : undefined
        if (!(error instanceof ServiceError) || status === undefined) throw error
        return { error: { http_code: status, message: error.message } }
      }
    },
    { parse: 'none', params: idParams, detail: { hide: true } },
  )
}

/** Reads the fields that matter. The phone has no plus sign. @throws INVALID_ARGUMENT */
function readInput(body: string): RelayInput {
  const { user, sms, metadata } = readRecord(parseJson(body), ['user', 'sms', 'metadata'])
  const { phone: newPhone, otp: code } = readRecord(sms, ['phone', 'otp'])
  const { phone: ownPhone, user_metadata: settings } = readRecord(user, ['phone', 'user_metadata'])
  const { locale } = readRecord(settings, ['locale'])
  const { ip_address: address } = readRecord(metadata, ['ip_address'])
  // A change of the number goes to the new one.
  const phone = [newPhone, ownPhone].find((one): one is string => typeof one === 'string' && one !== '')
  if (phone === undefined || typeof code !== 'string' || !new RegExp(relayedCodePattern).test(code))
    throw new ServiceError(
      'INVALID_ARGUMENT',
      'Expected sms.otp of 4 to 10 digits and letters, and a phone number in sms.phone or user.phone.',
    )
  return {
    phone: phone.startsWith('+') ? phone : `+${phone}`,
    code,
    locale: typeof locale === 'string' && localePattern.test(locale) ? locale : undefined,
    clientIp: typeof address === 'string' && isIP(address) !== 0 ? address : undefined,
  }
}

const localePattern = new RegExp(String(sendFields.locale['pattern']))

function readRecord<K extends string>(value: unknown, names: readonly K[]): Partial<Record<K, unknown>> {
  const record = isRecord(value) ? value : {}
  // Each name gets its value.
  return Object.fromEntries(names.map((name) => [name, record[name]])) as Partial<Record<K, unknown>>
}
