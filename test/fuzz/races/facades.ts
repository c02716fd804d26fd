import { expect } from 'bun:test'
import { hexToId, toSid } from '../../../src/shared/sids.ts'
import { guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { requestToken } from '../../helpers/camara-token.ts'
import { twilioHeaders } from '../../helpers/twilio-headers.ts'
import { openRaceFixture, type RaceFixture } from './fixture.ts'
import { concurrentCalls, runConcurrently, type Race } from './race.ts'

const env = { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off', OTPD_COMPAT: 'twilio-verify,camara' }

type Answer = { status: number; sid?: string; code?: number; state?: string }

/** Calls of the façade of CAMARA. */
async function createCamaraCalls({ service, application }: Pick<RaceFixture, 'service' | 'application'>) {
  const token = await requestToken(service, application)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  async function post(call: string, body: object) {
    const path = `/one-time-password-sms/v1/${call}`
    const { status, text } = await service.request('POST', path, { headers, body })
    return { status, id: text === '' ? '' : String(JSON.parse(text).authenticationId) }
  }
  return {
    sendCode: (phoneNumber: string) => post('send-code', { phoneNumber, message: '{{code}}' }),
    validateCode: (authenticationId: string, code: string) =>
      post('validate-code', { authenticationId, code }),
  }
}

/** Calls of the façade of Twilio Verify. */
async function createCalls({ service, application }: RaceFixture) {
  const path = `/v2/Services/${toSid('VA', application.id)}`
  const headers = twilioHeaders(application)
  async function post(resource: string, fields: Record<string, string>): Promise<Answer> {
    const body = new URLSearchParams(fields).toString()
    const { status, text } = await service.request('POST', `${path}/${resource}`, { headers, body })
    const { sid, code, status: state } = JSON.parse(text)
    return { status, sid, code, state }
  }
  return {
    camara: await createCamaraCalls({ service, application }),
    create: (phone: string) => post('Verifications', { To: phone, Channel: 'sms' }),
    cancel: (sid: string) => post(`Verifications/${sid}`, { Status: 'canceled' }),
    check: (phone: string, code: string) => post('VerificationCheck', { To: phone, Code: code }),
  }
}

const facadeRace = (
  name: string,
  round: (
    fixture: RaceFixture,
    calls: Awaited<ReturnType<typeof createCalls>>,
    random: () => number,
  ) => Promise<void>,
): Race => ({
  name,
  async open(database) {
    const fixture = await openRaceFixture(database, unlimitedPlans, env)
    const calls = await createCalls(fixture)
    return { round: (_, random) => round(fixture, calls, random), close: fixture.close }
  },
})

const toRequestId = (fixture: RaceFixture, phone: string) =>
  fixture.service.request<Array<{ id: string }>>('GET', `/v1/otp?phone=${encodeURIComponent(phone)}`, {
    as: fixture.developer,
  })

export const facadeRaces: Race[] = [
  facadeRace(
    `${concurrentCalls} creates for a phone are one verification`,
    async (fixture, calls, random) => {
      const phone = fixture.newPhone()
      const answers = await runConcurrently(concurrentCalls, random, () => calls.create(phone))
      const created = answers.filter(({ status }) => status === 201)
      expect(new Set(created.map(({ sid }) => sid)).size).toBe(1)
      expect(created).toHaveLength(4)
      expect(answers.filter(({ code }) => code === 60203)).toHaveLength(concurrentCalls - 4)
      expect((await toRequestId(fixture, phone)).data).toHaveLength(1)
    },
  ),

  facadeRace(`${concurrentCalls} right checks are one approval`, async (fixture, calls, random) => {
    const phone = fixture.newPhone()
    await calls.create(phone)
    const requestId = (await toRequestId(fixture, phone)).data[0]?.id ?? ''
    const code = await fixture.otp.getCode(requestId)
    const answers = await runConcurrently(concurrentCalls, random, () => calls.check(phone, code))
    expect(answers.filter(({ state }) => state === 'approved')).toHaveLength(1)
    expect(answers.filter(({ code }) => code === 20404)).toHaveLength(concurrentCalls - 1)
  }),

  facadeRace(
    'of creates, sends and cancellations at once a phone has one pending verification',
    async (fixture, calls, random) => {
      const phone = fixture.newPhone()
      const first = await calls.create(phone)
      const answers = await runConcurrently(concurrentCalls, random, async (index): Promise<Answer> => {
        if (index % 5 === 0)
          return { status: (await fixture.otp.send(fixture.application, { phone })).status }
        return index % 5 === 1 ? calls.cancel(first.sid ?? '') : calls.create(phone)
      })
      expect(answers.filter(({ status }) => status >= 500)).toEqual([])
      const { data } = await fixture.service.request<Array<{ id: string }>>(
        'GET',
        `/v1/otp?phone=${encodeURIComponent(phone)}&status=pending&limit=200`,
        { as: fixture.developer },
      )
      const rows = await Promise.all(data.map(({ id }) => fixture.findRow(id)))
      expect(rows.filter((row) => row?.compat).length).toBeLessThanOrEqual(1)
    },
  ),

  facadeRace('of sends by CAMARA at once one code lives', async (fixture, { camara }, random) => {
    const phone = fixture.newPhone()
    // Each that succeeds makes the others look again.
    const answers = await runConcurrently(12, random, (index) =>
      index % 5 === 0
        ? fixture.otp.send(fixture.application, { phone }).then(({ status }) => ({ status, id: '' }))
        : camara.sendCode(phone),
    )
    expect(answers.filter(({ status }) => status >= 300)).toEqual([])
    const ids = answers.map(({ id }) => id).filter((id) => id !== '')
    const toRow = (id: string) => fixture.findRow(hexToId('otp', id.replaceAll('-', '')))
    const rows = await Promise.all(ids.map(toRow))
    expect(rows.filter((row) => row?.status === 'canceled')).toHaveLength(ids.length - 1)
    const pending = rows.findIndex((row) => row?.status === 'pending')
    const code = await fixture.otp.getCode(rows[pending]?.id ?? '')
    const id = ids[pending] ?? ''
    const checked = await runConcurrently(concurrentCalls, random, () => camara.validateCode(id, code))
    expect(checked.filter(({ status }) => status === 204)).toHaveLength(1)
  }),
]
