import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const entry = {
  id: 'aud_01arz3ndektsv4rrffq69g5fav',
  action: 'credential.rotated',
  actorId: 'dev_1',
  targetId: 'app_1',
  targetName: 'web',
  detail: 'api',
  source: 'api',
  ip: '192.0.2.7',
  userAgent: 'otpd/1\u001b[2J',
  traceId: 'req_1',
  at: '2026-11-20T11:59:30.000Z',
}
const failed = {
  ...entry,
  action: 'login.failed',
  actorId: null,
  targetName: null,
  detail: null,
  userAgent: null,
}
const byOperator = { ...failed, action: 'account.disabled', source: 'host', ip: null, traceId: null }

describe('audit', () => {
  test('passes on an empty filter, as of a variable that is not set, to be refused', async () => {
    cli.respond = () => pageResponse()
    await cli.home.otpd(['audit', '--target', '', '--action', ''])
    expect(cli.server.requests[0]?.path).toContain('action=&targetId=')
  })

  test('shows actor, action, target, source and client', async () => {
    cli.respond = () => pageResponse(entry, failed, byOperator)
    const { stdout } = await cli.home.otpd(['audit'], { columns: 200 })
    const [, rotated, login, disabled] = Bun.stripANSI(stdout).split('\n')
    expect(rotated).toMatch(/^\S+ +credential\.rotated +web +192\.0\.2\.7 +api +otpd\/1.* dev_1$/)
    expect(login).toMatch(/login\.failed +app_1 +192\.0\.2\.7 .* unknown$/)
    expect(disabled).toMatch(/account\.disabled +app_1 +host .* operator$/)
    expect(stdout).not.toContain('\u001b[2J')
  })

  test('shortens the actor rather than the action and the address on a terminal of 80 columns', async () => {
    cli.respond = () =>
      pageResponse({ ...entry, actorId: 'dev_01arz3ndektsv4rrffq69g5fav', targetName: 'a long name' })
    const { stdout } = await cli.home.otpd(['audit'], { columns: 80 })
    expect(stdout).toMatch(/credential\.rotated +a long name +192\.0\.2\.7 .*dev_01ar…5fav\n$/)
  })

  test('requests one action, one target and one page', async () => {
    cli.respond = () => pageResponse()
    const { stdout } = await cli.home.otpd([
      'audit',
      '--action',
      'login.failed',
      '--target',
      'app_1',
      '--limit',
      '5',
    ])
    const { search } = new URL(`http://otpd.test${cli.server.requests[0]?.path}`)
    expect(Object.fromEntries(new URLSearchParams(search))).toEqual({
      action: 'login.failed',
      targetId: 'app_1',
      limit: '5',
    })
    expect(stdout).toContain('No audit entries')
  })

  test('prints the raw response of the API with --json', async () => {
    cli.respond = () => pageResponse(entry)
    const { stdout } = await cli.home.otpd(['audit', '--json'])
    expect(JSON.parse(stdout).data).toEqual([entry])
  })
})
