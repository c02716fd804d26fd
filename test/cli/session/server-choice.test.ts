import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createConversation, createScriptedServer } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

describe('the server is chosen by', () => {
  test('the flag, then OTPD_SERVER, then the last login, then the default', async () => {
    talk.answer = () => Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
    const other = createScriptedServer(() =>
      Response.json({ data: { status: 'operational', service: 'otpd', time: '' } }),
    )
    const health = async (args: string[], env = {}) =>
      (await talk.home.otpd(['health', ...args], { env })).stdout
    expect(await health([])).toContain(talk.server.url)
    expect(await health([], { OTPD_SERVER: other.url })).toContain(other.url)
    expect(await health(['--server', talk.server.url], { OTPD_SERVER: other.url })).toContain(talk.server.url)
    const elsewhere = { OTPD_CONFIG_DIR: join(talk.home.directory, 'none') }
    expect((await talk.home.otpd(['whoami'], { env: elsewhere })).stderr).toContain('http://127.0.0.1:8080')
    void other.stop()
  })

  test('no address with a password, a query or another scheme', async () => {
    for (const url of ['http://u:p@127.0.0.1', 'http://127.0.0.1/?a=1', 'ftp://127.0.0.1', 'http://'])
      expect((await talk.home.otpd(['health', '--server', url])).exitCode).toBe(2)
  })
})
