import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const phone = '+14155550100'
const commands = [
  ['profile', 'totp', 'enable'],
  ['project', 'delete', 'prj_01arz3ndektsv4rrffq69g5fav', '--yes'],
  ['user', 'erase', phone, '--yes'],
  ['user', 'unlock', phone],
  ['audit'],
  ['webhook', 'list'],
  ['api', 'GET', '/v1/projects'],
  ['health'],
  ['whoami'],
]

describe('a server that is not otpd', () => {
  const foreignBodies: [body: string, type: string][] = [
    ['{}', 'application/json'],
    ['{"data":{}}', 'application/json'],
    ['{"data":[]}', 'application/json'],
    ['{"data":[{}]}', 'application/json'],
    ['<html>Log in to the network</html>', 'text/html'],
  ]
  for (const [body, type] of foreignBodies)
    test(`that answers everything with ${body} is named by every command`, async () => {
      const headers = { 'content-type': type, 'x-request-id': 'f0a1' }
      cli.respond = () => new Response(body, { headers })
      for (const args of commands) {
        const result = await cli.home.otpd(args, { input: '' })
        expect(result).toMatchObject({ exitCode: 1, stdout: '' })
        expect(result.stderr).toContain('responded with 200, but not like an otpd server')
      }
    })
})

test('behind a proxy that replaces request ids, the health check tells that it is otpd, once', async () => {
  cli.respond = ({ path }) => {
    const response =
      path === '/v1/health'
        ? Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
        : pageResponse()
    response.headers.set('x-request-id', 'f0a1')
    return response
  }
  expect(await cli.home.otpd(['project', 'list', '--all'])).toMatchObject({ exitCode: 0 })
  expect(cli.server.requests.map(({ path }) => path)).toEqual(['/v1/projects?limit=200', '/v1/health'])
})
