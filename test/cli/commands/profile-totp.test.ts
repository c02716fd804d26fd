import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const uri = `otpauth://totp/otpd:ada%40example.com?secret=${secret}&issuer=otpd`
const recoveryCodes = ['aaaa-bbbb-cccc-dddd', 'eeee-ffff-gggg-hhhh']

beforeEach(() => {
  cli = createCliFixture()
  cli.respond = ({ path, method }) => {
    if (path.endsWith('/confirm')) return Response.json({ data: { enabled: true, recoveryCodes } })
    return Response.json({ data: method === 'DELETE' ? { enabled: false } : { secret, uri } })
  }
})

afterEach(() => cli.end())

/** Has the server refuse the code 000000. */
function refuseZeros(message: string) {
  const error = { code: 'INVALID_ARGUMENT', message, details: [{ path: 'code', message }] }
  const accept = cli.respond
  cli.respond = (request) =>
    request.body.includes('000000') ? Response.json({ error }, { status: 400 }) : accept(request)
}

const sent = () => cli.server.requests.map(({ method, path, body }) => [method, path, body])

describe('profile totp enable', () => {
  test('on a terminal shows a QR code and the secret, asks for a code and prints the recovery codes', async () => {
    const result = await cli.home.otpd(['profile', 'totp', 'enable'], { answers: ['123 456'] })
    expect(result.questions).toEqual(['Code (that the app shows now): '])
    expect(Bun.stripANSI(result.stderr)).toMatch(/[█▀▄ ]{30,}\n/)
    expect(result.stderr).toContain(secret)
    for (const code of recoveryCodes) expect(result.stdout).toContain(code)
    expect(sent()).toEqual([
      ['POST', '/v1/developer/me/totp', ''],
      ['POST', '/v1/developer/me/totp/confirm', '{"code":"123456"}'],
    ])
  })

  test('asks again for a wrong code, with the same secret', async () => {
    refuseZeros('The code is wrong.')
    const result = await cli.home.otpd(['profile', 'totp', 'enable'], { answers: ['000000', '123456'] })
    expect(result).toMatchObject({ exitCode: 0, questions: Array(2).fill('Code (that the app shows now): ') })
    expect(result.stderr).toContain('The code is wrong.\n')
    expect(result.stdout).toContain(recoveryCodes[0] ?? '')
    expect(sent().map(([, path]) => path)).toEqual([
      '/v1/developer/me/totp',
      ...Array(2).fill('/v1/developer/me/totp/confirm'),
    ])
    const inScript = await cli.home.otpd(['profile', 'totp', 'enable', '--code', '000000'])
    expect(inScript).toMatchObject({ exitCode: 2, questions: [] })
  })

  test('the QR code fits 80 columns with a long address', async () => {
    const longUri = `otpauth://totp/otpd:${'a'.repeat(64)}%40example.com?secret=${secret}&issuer=otpd`
    const { renderUnicodeCompact } = await import('uqr')
    const lines = renderUnicodeCompact(longUri, { border: 2 }).split('\n')
    expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThan(80)
    expect(lines.length).toBeLessThan(40)
  })

  test('without a terminal prints the secret, and --code confirms it', async () => {
    const shown = await cli.home.otpd(['profile', 'totp', 'enable'], { input: '' })
    expect(shown.stdout).toBe(`Secret  ${secret}\nURI     ${uri}\n`)
    const confirmed = await cli.home.otpd(['profile', 'totp', 'enable', '--code', '123456'])
    expect(confirmed.stdout).toContain(recoveryCodes[0] ?? '')
    expect(sent().at(-1)).toEqual(['POST', '/v1/developer/me/totp/confirm', '{"code":"123456"}'])
  })
})

describe('profile totp disable', () => {
  test('asks again for a wrong code', async () => {
    const message = 'The code is wrong. Enter it again.'
    refuseZeros(message)
    const args = ['profile', 'totp', 'disable']
    const result = await cli.home.otpd(args, { answers: ['000000', '123456'] })
    expect(result).toMatchObject({ exitCode: 0, stdout: '✓ TOTP disabled\n' })
    expect(result.stderr).toContain(`${message}\n`)
    expect(await cli.home.otpd([...args, '--code', '000000'])).toMatchObject({ exitCode: 2, questions: [] })
  })

  test.each([
    [['--code', '123456'], {}, '{"code":"123456"}'],
    [['--password-stdin'], { input: 'correct horse battery\n' }, '{"password":"correct horse battery"}'],
    [[], { answers: ['aaaa-bbbb-cccc-dddd'] }, '{"code":"aaaa-bbbb-cccc-dddd"}'],
  ])('%p', async (args, options, body) => {
    const result = await cli.home.otpd(['profile', 'totp', 'disable', ...args], options)
    expect(result.stdout).toContain('TOTP disabled')
    expect(sent()).toEqual([['DELETE', '/v1/developer/me/totp', body]])
  })
})
