import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createTestService, type TestService } from '../../helpers/service.ts'

let service: TestService
beforeAll(async () => void (service = await createTestService()))
afterAll(() => service.dispose())

test('GET /v1/health needs no authentication and returns the time', async () => {
  const response = await service.request('GET', '/v1/health')
  expect(response.status).toBe(200)
  expect(response.data).toEqual({
    status: 'operational',
    service: 'otpd',
    time: new Date(service.clock.now()).toISOString(),
  })
})

test('GET /v1/health/ready responds 200 while the database works', async () => {
  const response = await service.request<{ status: string }>('GET', '/v1/health/ready')
  expect([response.status, response.data.status]).toEqual([200, 'ready'])
})
