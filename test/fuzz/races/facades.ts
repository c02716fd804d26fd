import { expect } from 'bun:test'
import { toSid } from '../../../src/shared/sids.ts'
import { guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { twilioHeaders } from '../../helpers/twilio-headers.ts'
import { openRaceFixture, type RaceFixture } from './fixture.ts'
import { concurrentCalls, runConcurrently, type Race } from './race.ts'

const env = { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off', OTPD_COMPAT: 'twilio-verify' }

type Answer = { status: number; sid?: string; code?: number; state?: string }

/** Calls of the façade of Twilio Verify. */
function createCalls({ service, application }: RaceFixture) {
  const path = `/v2/Services/${toSid('VA', application.id)}`
  const headers = twilioHeaders(application)
  async function post(resource: string, fields: Record<string, string>): Promise<Answer> {
    const body = new URLSearchParams(fields).toString()
    const { status, text } = await service.request('POST', `${path}/${resource}`, { headers, body })
    const { sid, code, status: state } = JSON.parse(text)
    return { status, sid, code, state }
  }
  return {
    create: (phone: string) => post('Verifications', { To: phone, Channel: 'sms' }),
    cancel: (sid: string) => post(`Verifications/${sid}`, { Status: 'canceled' }),
    check: (phone: string, code: string) => post('VerificationCheck', { To: phone, Code: code }),
  }
}

const facadeRace = (
  name: string,
  round: (fixture: RaceFixture, calls: ReturnType<typeof createCalls>, random: () => number) => Promise<void>,
): Race => ({
  name,
  async open(database) {
    const fixture = await openRaceFixture(database, unlimitedPlans, env)
    const calls = createCalls(fixture)
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
    'of creates, sends and cancellations at once a phone has one living verification',
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
]
