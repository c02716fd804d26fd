import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { createConversation, createScriptedServer } from '../harness.ts'

let talk: ReturnType<typeof createConversation>
let other: ReturnType<typeof createScriptedServer>
const me = () => Response.json({ data: { id: 'dev_1', email: 'ada@example.com', name: null, plan: 'free' } })

beforeEach(async () => {
  talk = createConversation()
  talk.answer = me
  other = createScriptedServer(me)
  await talk.home.otpd(['context', 'add', 'here', talk.server.url])
  await talk.home.otpd(['context', 'add', 'there', other.url])
})

afterEach(() => {
  talk.end()
  void other.stop()
})

const list = async () => JSON.parse((await talk.home.otpd(['context', 'list', '--json'])).stdout).data

describe('a context', () => {
  test('is listed with who is logged in there', async () => {
    expect(await list()).toEqual([
      { name: 'here', server: talk.server.url, email: null, isCurrent: true },
      { name: 'there', server: other.url, email: null, isCurrent: false },
    ])
    expect((await talk.home.otpd(['context', 'ls'])).stdout).toMatch(/\n\* +here +http/)
  })

  test('that is used is talked to from then on, and errors name it', async () => {
    const ran = await talk.home.otpd(['context', 'use', 'there'])
    expect(ran.stdout).toBe(`✓ Using there (${other.url})\n`)
    expect(ran.stderr).toContain('Next: otpd login')
    const refused = await talk.home.otpd(['whoami'])
    expect(refused.exitCode).toBe(4)
    expect(refused.stderr).toContain('from the context there')
    await talk.home.otpd(['context', 'use', 'here'])
    expect((await talk.home.otpd(['whoami'])).stdout).toContain('(the context here)')
  })

  test('never gets the token of another server', async () => {
    expect((await talk.home.otpd(['whoami', '--context', 'there'])).exitCode).toBe(4)
    expect(other.asked.filter(({ headers }) => headers.has('authorization'))).toEqual([])
  })

  test('is named by the flag, then OTPD_CONTEXT; --server and OTPD_SERVER come first', async () => {
    const health = (args: string[], env = {}) => talk.home.otpd(['health', ...args], { env })
    const asked = async (args: string[], env = {}) => {
      const before = other.asked.length
      await health(args, env)
      return other.asked.length > before ? 'there' : 'here'
    }
    expect(await asked(['--context', 'there'])).toBe('there')
    expect(await asked([], { OTPD_CONTEXT: 'there' })).toBe('there')
    expect(await asked(['--context', 'here'], { OTPD_CONTEXT: 'there' })).toBe('here')
    expect(await asked(['--context', 'there'], { OTPD_SERVER: talk.server.url })).toBe('here')
    expect(await asked(['--context', 'there', '--server', talk.server.url])).toBe('here')
  })

  test('that is not there is exit code 5, and names of objects are none', async () => {
    for (const name of ['nowhere', 'toString', '__proto__']) {
      expect((await talk.home.otpd(['context', 'use', name])).exitCode).toBe(5)
      expect((await talk.home.otpd(['whoami', '--context', name])).exitCode).toBe(5)
      expect((await talk.home.otpd(['context', 'remove', name])).exitCode).toBe(5)
    }
    expect((await talk.home.otpd(['context', 'add', '__proto__', other.url])).exitCode).toBe(2)
    expect((await talk.home.otpd(['context', 'add', 'x', 'http://u:p@host'])).exitCode).toBe(2)
    expect((await talk.home.otpd(['context', 'add', 'here', other.url])).exitCode).toBe(6)
  })

  test('is forgotten without its login, and stays without one', async () => {
    expect((await talk.home.otpd(['context', 'remove', 'here'])).exitCode).toBe(0)
    expect((await talk.home.otpd(['whoami'])).exitCode).toBe(0)
    await talk.home.otpd(['context', 'use', 'there'])
    await talk.home.otpd(['logout', '--context', 'there'])
    expect(await list()).toEqual([{ name: 'there', server: other.url, email: null, isCurrent: true }])
  })

  test('is none in a file from before, and a login keeps those that there are', async () => {
    const login = await talk.home.otpd(['login', '--token-stdin'], { input: 'token' })
    expect(login.exitCode).toBe(0)
    expect(await list()).toHaveLength(2)
    const { contexts: _none, ...before } = JSON.parse(readFileSync(talk.home.credentials, 'utf8'))
    writeFileSync(talk.home.credentials, JSON.stringify(before))
    expect((await talk.home.otpd(['context', 'list'])).stdout).toStartWith('No contexts yet.')
  })
})
