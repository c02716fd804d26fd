import { expect, test } from 'bun:test'
import { ServiceError } from '../../src/domain/model/errors.ts'
import { reject } from '../../src/domain/model/rejected.ts'
import { createRefusedSends } from '../../src/domain/otp/refused-sends.ts'
import type { CallingApplication } from '../../src/domain/model/application.ts'
import { testClock } from '../helpers/clock.ts'

const application: CallingApplication = {
  id: 'app_1',
  developerId: 'dev_1',
  projectId: 'prj_1',
  environment: 'live',
  otpTtlSeconds: 300,
  countries: null,
  name: 'web',
  defaultLocale: null,
  webOtpDomain: null,
  androidAppHash: null,
  credentialsVersion: 1,
  plan: 'free',
}

test('a refusal that cannot be recorded is still answered, and the error is reported', async () => {
  const failure = new Error('the disk is full')
  const errors: unknown[] = []
  const record = createRefusedSends({
    store: { decide: () => Promise.reject(failure) },
    clock: testClock(),
    onError: (error) => void errors.push(error),
  })
  const refusal = reject(new ServiceError('RATE_LIMITED', 'Too many codes.', { retryAfterSeconds: 60 }))
  await record(application, { phone: '+14155550132', requestId: null }, refusal)
  expect(errors).toEqual([failure])
})
