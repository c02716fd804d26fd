import { expect } from 'bun:test'
import type { OtpClient } from './otp-client.ts'
import type { TestService } from './service.ts'

/** A guard that blocks what exceeds an allowance. */
export const enforced = {
  OTPD_GUARD_MODE: 'enforce',
  OTPD_GUARD_DENIED_COUNTRIES: 'cu',
  OTPD_PHONE_SEND_BUDGET: 'off',
}

/** Opens a device of a new developer that has spent its allowance of five messages; three times that are fifteen. */
export async function openDevice(service: TestService, otp: OtpClient) {
  const developer = await service.createDeveloper()
  const app = await service.createApplication(developer)
  let lastNumber = 1000
  const send = (body: object = {}, headers?: Record<string, string>) =>
    otp.send(app, { phone: `+1415555${++lastNumber}`, deviceId: 'one', ...body }, headers)
  for (let n = 0; n < 5; n++) expect((await send()).status).toBe(201)
  return { developer, app, send }
}
