import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createCliFixture, createScriptedServer } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('the server is chosen by', () => {
  test('the flag, then OTPD_SERVER, then the last login, then the default', async () => {
    cli.respond = () => Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
    const other = createScriptedServer(() =>
      Response.json({ data: { status: 'operational', service: 'otpd', time: '' } }),
    )
    const health = async (args: string[], env = {}) =>
      (await cli.home.otpd(['health', ...args], { env })).stdout
    expect(await health([])).toContain(cli.server.url)
    expect(await health([], { OTPD_SERVER: other.url })).toContain(other.url)
    expect(await health(['--server', cli.server.url], { OTPD_SERVER: other.url })).toContain(cli.server.url)
    const otherConfigEnv = { OTPD_CONFIG_DIR: join(cli.home.directory, 'none') }
    expect((await cli.home.otpd(['whoami'], { env: otherConfigEnv })).stderr).toContain(
      'http://127.0.0.1:8080',
    )
    void other.stop()
  })

  test('no address with a password, a query or another scheme', async () => {
    for (const url of ['http://u:p@127.0.0.1', 'http://127.0.0.1/?a=1', 'ftp://127.0.0.1', 'http://'])
      expect((await cli.home.otpd(['health', '--server', url])).exitCode).toBe(2)
  })
})
