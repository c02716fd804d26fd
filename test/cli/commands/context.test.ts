import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { createCliFixture, createScriptedServer } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>
let other: ReturnType<typeof createScriptedServer>
const me = () => Response.json({ data: { id: 'dev_1', email: 'ada@example.com', name: null, plan: 'free' } })

beforeEach(async () => {
  cli = createCliFixture()
  cli.respond = me
  other = createScriptedServer(me)
  await cli.home.otpd(['context', 'add', 'here', cli.server.url])
  await cli.home.otpd(['context', 'add', 'there', other.url])
})

afterEach(() => {
  cli.end()
  void other.stop()
})

const list = async () => JSON.parse((await cli.home.otpd(['context', 'list', '--json'])).stdout).data

describe('a context', () => {
  test('is listed with its login', async () => {
    expect(await list()).toEqual([
      { name: 'here', server: cli.server.url, email: null, isLoggedIn: true, isCurrent: true },
      { name: 'there', server: other.url, email: null, isLoggedIn: false, isCurrent: false },
    ])
    const { stdout } = await cli.home.otpd(['context', 'ls'])
    // A token from elsewhere may not name an account.
    expect(stdout).toMatch(/\n\* +here +http\S+ +with a token\n +there +http\S+ +-\n$/)
    expect((await cli.home.otpd(['context', 'list', '-q'])).stdout).toBe('here\nthere\n')
  })

  test('that is used becomes the default server, and errors name it', async () => {
    const result = await cli.home.otpd(['context', 'use', 'there'])
    expect(result.stdout).toBe(`✓ Using there (${other.url})\n`)
    expect(result.stderr).toContain('Next: otpd login')
    const refused = await cli.home.otpd(['whoami'])
    expect(refused.exitCode).toBe(4)
    expect(refused.stderr).toContain('from the context there')
    await cli.home.otpd(['context', 'use', 'here'])
    expect((await cli.home.otpd(['whoami'])).stdout).toContain('(the context here)')
  })

  test('never gets the token of another server', async () => {
    expect((await cli.home.otpd(['whoami', '--context', 'there'])).exitCode).toBe(4)
    expect(other.requests.filter(({ headers }) => headers.has('authorization'))).toEqual([])
  })

  test('is named by the flag, then OTPD_CONTEXT; flags take precedence, then OTPD_SERVER', async () => {
    const health = (args: string[], env = {}) => cli.home.otpd(['health', ...args], { env })
    const reachedServer = async (args: string[], env = {}) => {
      const before = other.requests.length
      await health(args, env)
      return other.requests.length > before ? 'there' : 'here'
    }
    expect(await reachedServer(['--context', 'there'])).toBe('there')
    expect(await reachedServer([], { OTPD_CONTEXT: 'there' })).toBe('there')
    expect(await reachedServer(['--context', 'here'], { OTPD_CONTEXT: 'there' })).toBe('here')
    expect(await reachedServer(['--context', 'there'], { OTPD_SERVER: cli.server.url })).toBe('there')
    expect(await reachedServer([], { OTPD_CONTEXT: 'there', OTPD_SERVER: cli.server.url })).toBe('here')
    expect(await reachedServer(['--context', 'there', '--server', cli.server.url])).toBe('here')
  })

  test('that does not exist is 5, even with the name of an object property', async () => {
    for (const name of ['nowhere', 'toString', '__proto__']) {
      expect((await cli.home.otpd(['context', 'use', name])).exitCode).toBe(5)
      expect((await cli.home.otpd(['whoami', '--context', name])).exitCode).toBe(5)
      expect((await cli.home.otpd(['context', 'remove', name])).exitCode).toBe(5)
    }
    expect((await cli.home.otpd(['context', 'add', '__proto__', other.url])).exitCode).toBe(2)
    expect((await cli.home.otpd(['context', 'add', 'x', 'http://u:p@host'])).exitCode).toBe(2)
    expect((await cli.home.otpd(['context', 'add', 'here', other.url])).exitCode).toBe(6)
  })

  test('with an address that no server has is not stored', async () => {
    expect(await cli.home.otpd(['context', 'add', 'x', '-1'])).toMatchObject({
      exitCode: 2,
      stderr:
        'Error: The server address from the command line is not valid.\n  Use an address like: http://127.0.0.1:8080\n',
    })
    expect(await list()).toHaveLength(2)
  })

  test('is removed without its login, and survives a logout', async () => {
    expect((await cli.home.otpd(['context', 'remove', 'here'])).exitCode).toBe(0)
    expect((await cli.home.otpd(['whoami'])).exitCode).toBe(0)
    await cli.home.otpd(['context', 'use', 'there'])
    await cli.home.otpd(['logout', '--context', 'there'])
    const there = { name: 'there', server: other.url, email: null, isLoggedIn: false, isCurrent: true }
    expect(await list()).toEqual([there])
  })

  test('that is removed while it is in use leaves the default server, unless there is a login', async () => {
    await cli.home.otpd(['context', 'use', 'there'])
    await cli.home.otpd(['context', 'remove', 'there'])
    expect((await cli.home.otpd(['whoami'])).stderr).toContain('That is the default address.')
  })

  test('is absent from an older credentials file, and a login keeps existing ones', async () => {
    const login = await cli.home.otpd(['login', '--token-stdin'], { input: 'token' })
    expect(login.exitCode).toBe(0)
    expect(await list()).toHaveLength(2)
    const { contexts: _none, ...before } = JSON.parse(readFileSync(cli.home.credentials, 'utf8'))
    writeFileSync(cli.home.credentials, JSON.stringify(before))
    expect((await cli.home.otpd(['context', 'list'])).stdout).toStartWith('No contexts yet.')
  })
})
