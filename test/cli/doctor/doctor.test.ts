import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createColors } from 'picocolors'
import { checksText } from '../../../cli/doctor/checks-text.ts'
import { fault, ok, warning, type Check } from '../../../src/shared/check.ts'
import { clockChecks } from '../../../cli/doctor/server.ts'
import { terminalCheck } from '../../../cli/doctor/terminal.ts'
import { createOutput } from '../../../cli/terminal/output.ts'
import { processIo } from '../../../cli/terminal/terminal.ts'
import { version } from '../../../cli/version.ts'
import { createCliFixture, errorResponse, type RecordedRequest } from '../cli-fixture.ts'

const plain = createColors(false)

describe('the text', () => {
  test('aligns names and remedies, and counts the problems', () => {
    const checks = [ok('a', 'fine'), warning('long name', 'so so', 'Do.'), fault('b', 'bad', 'otpd serve')]
    expect(checksText(checks, plain).split('\n')).toEqual([
      '✓ a          fine',
      '▲ long name  so so',
      '             → Do.',
      '✗ b          bad',
      '             → otpd serve',
      '',
      '1 fault, 1 warning.',
    ])
    expect(checksText([ok('a', 'fine')], plain)).toEndWith('\n\nNo problems found.')
  })

  test('wraps lines at the width of a terminal, but not in a pipe', () => {
    const checks = [warning('name', 'word '.repeat(20).trim(), 'step '.repeat(20).trim())]
    expect(checksText(checks, plain).split('\n')).toHaveLength(4)
    const lines = checksText(checks, plain, 60).split('\n')
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.every((line) => line.length <= 60)).toBe(true)
    expect(lines.slice(1, 3)).toEqual([
      expect.stringMatching(/^ {8}word/),
      expect.stringMatching(/^ {8}(word|→ step)/),
    ])
  })

  test('shows no control characters of foreign text', () => {
    expect(checksText([ok('a', 'x\u001b[31my')], plain)).not.toContain('\u001b')
  })
})

describe('the clock', () => {
  const nowMs = Date.parse('2026-11-20T12:00:00Z')
  const check = (time: unknown) => clockChecks(time, nowMs)[0]

  test.each(['2026-11-20T12:00:05Z', '2026-11-20T11:59:55.000Z'])('agrees with %s', (time) => {
    expect(check(time)?.status).toBe('ok')
  })

  test('that differs by more than 5 s is a warning that says in which direction', () => {
    expect(check('2026-11-20T12:02:00Z')?.message).toStartWith('2 min behind the server')
    expect(check('2026-11-20T11:59:54Z')?.message).toStartWith('6 s ahead of the server')
  })

  test('is not checked when the server returns no time', () => {
    expect(check('')).toBeUndefined()
    expect(check(undefined)).toBeUndefined()
  })
})

describe('the terminal', () => {
  const checkTerminal = (env: Record<string, string>, stdoutIsTerminal = true) => {
    const io = { ...processIo(), env, stdoutIsTerminal, columns: () => 80 }
    return terminalCheck(io, createOutput(io, {}))
  }

  test('is described by its width, encoding and colours', () => {
    expect(checkTerminal({ LANG: 'en_US.UTF-8' })).toMatchObject({
      status: 'ok',
      message: '80 columns, UTF-8, colour',
    })
    expect(checkTerminal({ LC_ALL: 'C.utf8', NO_COLOR: '1' }).message).toBe('80 columns, UTF-8, no colour')
    expect(checkTerminal({ LANG: 'en_US.UTF-8', LC_ALL: 'C' })).toMatchObject({ status: 'warning' })
    expect(checkTerminal({}, false)).toMatchObject({ status: 'ok', message: expect.stringContaining('none') })
  })
})

describe('a server', () => {
  let cli: ReturnType<typeof createCliFixture>

  beforeEach(() => {
    cli = createCliFixture()
  })
  afterEach(() => cli.end())

  const respondHealthy = (recordedRequest: RecordedRequest, serverVersion = version) => {
    if (recordedRequest.path === '/v1/health') {
      const time = new Date(cli.home.clock.nowMs).toISOString()
      return Response.json({ data: { status: 'operational', service: 'otpd', time } })
    }
    if (recordedRequest.path === '/v1/health/ready')
      return Response.json({ data: { status: 'ready', cause: null } })
    if (recordedRequest.path === '/v1/openapi.json')
      return Response.json({ openapi: '3.0.3', info: { version: serverVersion } })
    return Response.json({ data: { id: 'dev_1', email: 'ada@example.com' } })
  }

  async function runDoctor() {
    const args = ['doctor', '--json', '--data-dir', join(cli.home.directory, 'none')]
    const result = await cli.home.otpd(args)
    const { data }: { data: { checks: Check[]; ok: boolean } } = JSON.parse(result.stdout)
    expect(data.ok).toBe(result.exitCode === 0)
    expect(result.exitCode === 0 || result.exitCode === 8).toBe(true)
    return (name: string) => data.checks.find((check) => check.name === name)
  }

  test('without problems has four checks', async () => {
    cli.respond = (recordedRequest) => respondHealthy(recordedRequest)
    const find = await runDoctor()
    for (const name of ['server', 'version', 'clock', 'login']) expect(find(name)?.status).toBe('ok')
    expect(find('login')?.message).toStartWith('ada@example.com, token from ~/.config/otpd/credentials.json')
  })

  test('of another version is a warning', async () => {
    cli.respond = (recordedRequest) => respondHealthy(recordedRequest, '99.0.0')
    expect((await runDoctor())('version')).toMatchObject({
      status: 'warning',
      message: `this program is ${version}, the server is 99.0.0`,
    })
  })

  test('that is not ready, or not otpd, is a fault', async () => {
    cli.respond = (recordedRequest) =>
      recordedRequest.path === '/v1/health/ready'
        ? Response.json({ data: { status: 'not_ready', cause: 'database' } }, { status: 503 })
        : respondHealthy(recordedRequest)
    expect((await runDoctor())('server')).toMatchObject({
      status: 'fault',
      message: expect.stringContaining('it cannot write to its database'),
    })
    cli.respond = () => new Response('<h1>It works!</h1>')
    expect((await runDoctor())('server')?.message).toContain('not like an otpd server')
  })

  test('that rejects the token suggests a login', async () => {
    cli.respond = (recordedRequest) =>
      recordedRequest.path === '/v1/developer/me'
        ? errorResponse(401, 'UNAUTHENTICATED', 'No.')
        : respondHealthy(recordedRequest)
    expect((await runDoctor())('login')).toMatchObject({
      status: 'warning',
      remedy: `otpd login --server ${cli.server.url}`,
    })
  })

  test('that cannot be reached is a fault, and gets no further requests', async () => {
    await cli.server.stop()
    const find = await runDoctor()
    expect(find('server')).toMatchObject({ status: 'fault', remedy: expect.stringContaining('otpd serve') })
    expect(find('login')).toBeUndefined()
  })
})
