import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { parseServer } from '../../../cli/session/server-choice.ts'
import { createCliFixture, createScriptedServer } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('the server address', () => {
  test('is that of the flag, then OTPD_SERVER, then the last login, then the default', async () => {
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

  test.each(['--server', '--context'])('is that of no other server where %s is empty', async (flag) => {
    const { exitCode, stderr } = await cli.home.otpd(['project', 'list', flag, ''])
    expect([exitCode, stderr]).toEqual([
      2,
      `Error: ${flag}: The value is empty.\n  Name a server, or leave it out.\n`,
    ])
    expect(cli.server.requests).toEqual([])
  })

  test.each([
    ['localhost:8080', 'http://localhost:8080'],
    ['LOCALHOST:8080/otp/', 'http://localhost:8080/otp'],
    ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['[::1]:8080', 'http://[::1]:8080'],
    ['localhost.example:8080', 'https://localhost.example:8080'],
    ['127.0.0.1.example', 'https://127.0.0.1.example'],
    ['app.localhost', 'https://app.localhost'],
    ['0.0.0.0:8080', 'https://0.0.0.0:8080'],
    ['otp.example.com', 'https://otp.example.com'],
    ['http://otp.example.com', 'http://otp.example.com'],
    ['https://localhost', 'https://localhost'],
  ])('may be %s, which means %s: plain http is the default on loopback only', (text, url) => {
    expect(parseServer(text, '--server').url).toBe(url)
  })

  test('must not have a password, a query or another scheme', async () => {
    for (const url of [
      'http://u:p@127.0.0.1',
      'localhost:80@example.com',
      'http://127.0.0.1/?a=1',
      'ftp://127.0.0.1',
      'http://',
    ])
      expect((await cli.home.otpd(['health', '--server', url])).exitCode).toBe(2)
  })

  test.each([
    'otp_server:8080',
    'otp.example.com.',
    '10.0.0.5',
    'http://127.1',
    '[2001:db8::1]',
    'bücher.example',
  ])('may be %s', (text) => expect(() => parseServer(text, '--server')).not.toThrow())

  test.each(
    [
      '-1 - . .. ../x /x //x * a,b "x" \' a..b -x.com x-.com http://-1',
      '8080 http://8080 localhost:0 http:/x https:x http//x https:/x :8080',
    ].flatMap((line) => line.split(' ')),
  )('must not be %s, which the URL parser takes for a host or makes into one', (text) => {
    expect(() => parseServer(text, '--server')).toThrow('The server address from --server is not valid.')
  })
})
