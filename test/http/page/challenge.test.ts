import { afterAll, beforeAll, expect, test } from 'bun:test'
import { enforced } from '../../helpers/challenged-device.ts'
import { createPageVisitor } from '../../helpers/page-visitor.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'
import { solveAltcha } from '../../helpers/solve-altcha.ts'

let service: TestService
beforeAll(async () => {
  const env = { ...enforced, OTPD_GUARD_CHALLENGE_KIND: 'altcha' }
  service = await createTestService({ env, plans: unlimitedPlans })
})
afterAll(() => service.dispose())

test('the page asks a device that has spent its allowance for a proof of work, and sends with it', async () => {
  const owner = await service.createDeveloper()
  const application = await service.createApplication(owner)
  const body = { enabled: true, returnOrigins: ['https://shop.example'] }
  await service.request('PATCH', `/v1/applications/${application.id}/page`, { as: owner, body })
  const { data } = await service.request<{ id: string; url: string }>('POST', '/v1/otp/sessions', {
    as: application,
    body: { returnUrl: 'https://shop.example/' },
  })
  const visitor = createPageVisitor(service, data.url)
  await visitor.get()
  const send = (number: number, fields = {}) =>
    visitor.submit({ action: 'send', phone: `+1415555${2000 + number}`, ...fields })
  // The cookie is the device: every window of this browser counts.
  for (let number = 0; number < 5; number++) expect((await send(number)).notice).toBeUndefined()
  const asked = await send(5)
  expect(asked.status).toBe(403)
  expect(asked.notice).toBe('Turn on JavaScript to continue.')
  const byScript = await visitor.post({ action: 'send', phone: '+14155552005' }, { 'otpd-page': '1' })
  expect(byScript.notice).toBe('Checking that you are not a robot…')
  const work = /data-work="([^"]+)"/.exec(asked.text)?.[1]?.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
  const sent = await send(5, { challenge: solveAltcha(JSON.parse(work ?? '{}')) })
  expect(sent.text).toContain('autocomplete="one-time-code"')
})
