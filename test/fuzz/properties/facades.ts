import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { toSid } from '../../../src/shared/sids.ts'
import { guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'
import { requestToken } from '../../helpers/camara-token.ts'
import { twilioHeaders } from '../../helpers/twilio-headers.ts'
import { defineProperty } from '../property.ts'

const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 20 }))
const names =
  'To Channel Locale DeviceIp Tags AppHash RiskCheck EnableSnaClientToken CustomCode Code VerificationSid Status Amount RateLimits PageSize Page __proto__ constructor'.split(
    ' ',
  )
const values = [
  '+14155550132',
  'sms',
  'call',
  'auto',
  'de',
  '::1',
  '{"a":"b"}',
  '424242',
  'canceled',
  '1',
  '',
]
const field = fc.tuple(fc.oneof(fc.constantFrom(...names), text), fc.oneof(fc.constantFrom(...values), text))
const form = fc.array(field, { maxLength: 6 }).map((fields) => new URLSearchParams(fields).toString())
const bodies = fc.oneof(form, text, fc.constant('To=%2B14155550132&Channel=sms'), fc.constant('a=%ff&b=%zz'))

const formType = 'application/x-www-form-urlencoded'

export const facadeProperties = [
  defineProperty(
    'every request to the façade of Twilio is answered in its form, and never with 5xx',
    400,
    async () => {
      const env = { ...guardOffEnv, OTPD_COMPAT: 'twilio-verify', OTPD_PHONE_SEND_BUDGET: 'off' }
      const service = await createTestService({ plans: unlimitedPlans, env })
      const application = await service.createApplication(await service.createDeveloper(), {
        environment: 'test',
      })
      const own = twilioHeaders(application)
      const sid = toSid('VA', application.id)
      const segments = fc.oneof(
        fc.constantFrom(
          'Services',
          sid,
          'Verifications',
          'VerificationCheck',
          '+14155550132',
          `VE${'0'.repeat(32)}`,
          '',
        ),
        text.map(encodeURIComponent),
        fc.constantFrom('%', '%ff', '%00', '..;', '*', ':service'),
      )
      const resources = [
        'Verifications',
        'VerificationCheck',
        'Verifications/+14155550132',
        `Verifications/${sid}`,
      ]
      const path = fc.oneof(
        fc
          .constantFrom('', ...resources.map((resource) => `/${resource}`))
          .map((rest) => `/v2/Services/${sid}${rest}`),
        fc
          .tuple(fc.constantFrom('/v2/', '/v3/'), fc.array(segments, { maxLength: 5 }))
          .map(([version, rest]) => version + rest.join('/')),
      )
      const query = fc.oneof(
        fc.constant(''),
        form.map((one) => `?${one}`),
        text.map((one) => `?${encodeURI(one)}`),
      )
      const call = fc.record({
        method: fc.constantFrom('GET', 'POST', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'),
        path,
        query,
        body: bodies,
        type: fc.constantFrom(own['content-type'], own['content-type'], 'application/json', 'text/plain', ''),
        authorization: fc.oneof(
          { weight: 6, arbitrary: fc.constant(own.authorization) },
          { weight: 1, arbitrary: fc.constantFrom('', 'Basic', 'Basic Og==', 'Bearer x') },
          { weight: 1, arbitrary: fc.base64String().map((one) => `Basic ${one}`) },
        ),
      })
      const property = fc.asyncProperty(call, async ({ method, path, query, body, type, authorization }) => {
        const sent = method === 'GET' ? undefined : body
        const headers = { authorization, 'content-type': type }
        const response = await service.request(method, path + query, { body: sent, headers })
        const parsed: unknown = JSON.parse(response.text)
        expect(response.status).toBeLessThan(500)
        expect(response.headers.get('x-request-id')).toMatch(/^req_/)
        if (authorization !== own.authorization) expect(response.status).toBe(401)
        if (response.status < 400) return
        expect(Object.keys(parsed as object)).toEqual(['code', 'message', 'more_info', 'status'])
        expect(parsed).toMatchObject({ status: response.status })
      })
      return { property, close: () => service.dispose() }
    },
  ),

  defineProperty(
    'every request to the façade of CAMARA is answered in its form, and never with 5xx',
    400,
    async () => {
      const env = { ...guardOffEnv, OTPD_COMPAT: 'camara', OTPD_PHONE_SEND_BUDGET: 'off' }
      const service = await createTestService({ plans: unlimitedPlans, env })
      const application = await service.createApplication(await service.createDeveloper(), {
        environment: 'test',
      })
      const own = `Bearer ${await requestToken(service, application)}`
      const api = '/one-time-password-sms/v1'
      const path = fc.oneof(
        fc.constantFrom(`${api}/send-code`, `${api}/validate-code`, '/camara/token', `${api}/*`),
        fc
          .tuple(fc.constantFrom(`${api}/`, '/camara/', '/one-time-password-sms/'), text)
          .map(([start, rest]) => start + encodeURIComponent(rest)),
      )
      const json = fc.oneof(
        fc.jsonValue({ maxDepth: 2 }),
        fc.record({ phoneNumber: fc.constantFrom('+14155550132', '1', ''), message: text }),
        fc.record({ phoneNumber: fc.constant('+14155550132'), message: text.map((one) => `${one}{{code}}`) }),
        fc.record({
          authenticationId: fc.oneof(fc.uuid(), text),
          code: fc.oneof(text, fc.constant('424242')),
        }),
      )
      const call = fc.record({
        method: fc.constantFrom('GET', 'POST', 'POST', 'POST', 'DELETE', 'PUT', 'OPTIONS'),
        path,
        body: fc.oneof(
          json.map((value) => JSON.stringify(value)),
          form,
          text,
        ),
        type: fc.constantFrom('application/json', 'application/json', 'text/plain', formType, ''),
        authorization: fc.oneof(
          { weight: 6, arbitrary: fc.constant(own) },
          { weight: 1, arbitrary: fc.constantFrom('', 'Bearer', 'Basic Og==', `${own}A`) },
          { weight: 1, arbitrary: fc.base64String().map((one) => `Bearer ${one}`) },
        ),
        correlator: fc.oneof(fc.string({ maxLength: 20 }).map(encodeURIComponent), fc.constant('')),
      })
      const property = fc.asyncProperty(call, async (made) => {
        const sent = made.method === 'GET' ? undefined : made.body
        const headers = {
          authorization: made.authorization,
          'content-type': made.type,
          'x-correlator': made.correlator,
        }
        const response = await service.request(made.method, made.path, { body: sent, headers })
        expect(response.status).toBeLessThan(500)
        expect(response.headers.has('x-correlator')).toBe(true)
        if (response.status === 204) return
        const parsed = JSON.parse(response.text) as { status?: number }
        if (response.status === 200) return
        const isToken = made.path === '/camara/token'
        const members = isToken ? ['error', 'error_description'] : ['status', 'code', 'message']
        expect(Object.keys(parsed)).toEqual(members)
        if (isToken) return
        expect(parsed.status).toBe(response.status)
        if (made.authorization !== own) expect(response.status).toBe(401)
      })
      return { property, close: () => service.dispose() }
    },
  ),
]
