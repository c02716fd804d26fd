import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { CallingApplication } from '../../../domain/model/application.ts'
import { invalidField, invalidRequest } from '../../../domain/model/errors.ts'
import { attachRate, isRejected } from '../../../domain/model/rejected.ts'
import type { OtpService } from '../../../domain/otp/otp.ts'
import { hexToId, idToHex } from '../../../shared/sids.ts'
import { readJson } from '../../json-body.ts'
import { deferRateHeaders, setRateHeaders } from '../../rate-headers.ts'
import { object } from '../../schemas.ts'

/** An authenticated call. */
export type Call = {
  application: CallingApplication
  request: Request
  set: { status?: number | string; headers: Record<string, string | number> }
}

const facade = 'camara'
const placeholder = '{{code}}'
const messageMax = 160

const sendBody = object({
  phoneNumber: Type.String({ pattern: '^\\+[1-9][0-9]{4,14}$' }),
  message: Type.String({ minLength: 1 }),
})
const validateBody = object({
  authenticationId: Type.String({ minLength: 1, maxLength: 36 }),
  code: Type.String({ minLength: 1, maxLength: 10 }),
})

/** The calls of CAMARA one-time-password-sms v1. */
export function createCalls(otp: OtpService) {
  return {
    /** Sends a code with a text of the caller's own. The code that was sent to the phone before is canceled. */
    async sendCode({ application, request, set }: Call): Promise<object> {
      deferRateHeaders(request, () => otp.peekRate(application, 'send'))
      const { phoneNumber: phone, message } = await readBody(request, sendBody)
      if ([...message].length > messageMax || !message.includes(placeholder))
        throw invalidField('body', 'message', `Expected up to ${messageMax} characters with ${placeholder}.`)
      const sent = await otp.replace(facade, application, { phone, channel: 'sms', ownText: message })
      setRateHeaders(set.headers, sent.rate)
      return { authenticationId: toUuid(sent.requestId) }
    },

    async validateCode({ application, request, set }: Call): Promise<undefined> {
      deferRateHeaders(request, () => otp.peekRate(application, 'verify'))
      const { authenticationId, code } = await readBody(request, validateBody)
      // An id of another form is looked up too, so that it is charged as an unknown one.
      const { rate, result } = await otp.check(
        application,
        { requestId: fromUuid(authenticationId) },
        { code },
      )
      if (isRejected(result)) throw attachRate(result, rate)
      setRateHeaders(set.headers, rate)
      set.status = 204
    },
  }
}

/** @throws INVALID_ARGUMENT; as `readJson` */
async function readBody<T extends TSchema>(request: Request, schema: T): Promise<Static<T>> {
  const body: unknown = request.body === null ? {} : await readJson(request)
  if (!Value.Check(schema, body)) throw invalidRequest([])
  return body
}

/** Writes the 128 bits of a request's id as a UUID. */
const toUuid = (requestId: string) =>
  idToHex(requestId).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/** Reads what `toUuid` wrote, in either case. @returns an empty id for anything else */
const fromUuid = (text: string) =>
  /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? hexToId('otp', text.replaceAll('-', '')) : ''
