import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTwilioVerify, verifyServiceSid } from '../../helpers/carriers/twilio-verify-server.ts'
import { createHome, type RunOptions } from '../cli-fixture.ts'

const accountSid = `AC${'0a'.repeat(16)}`
let home: ReturnType<typeof createHome>
let carrier: ReturnType<typeof startTwilioVerify>
let file: string

beforeEach(() => {
  home = createHome()
  carrier = startTwilioVerify()
  file = join(home.directory, 'otpd.toml')
})
afterEach(async () => {
  home.remove()
  await carrier.stop()
})

const add = (args: string[], options?: RunOptions) =>
  home.otpd(['provider', 'add', ...args, '--config', file], options)
const given = (...settings: string[]) => settings.flatMap((setting) => ['--set', setting])
const verify = () => [
  'twilio-verify',
  ...given(`accountSid=${accountSid}`, `serviceSid=${verifyServiceSid}`, `baseUrl=${carrier.url}`),
]

describe('provider add', () => {
  test('asks for what the kind needs, tries it, and keeps a typed secret in a file of its own', async () => {
    const answers = ['twilio-verify', 'AC1', accountSid, verifyServiceSid, 'authToken', 'token-of-twilio']
    const { exitCode, stdout, stderr, questions } = await add(given(`baseUrl=${carrier.url}`), { answers })
    expect(exitCode).toBe(0)
    expect(stdout).toContain('✓ twilio-verify (Twilio Verify) is in')
    expect(stdout).toMatch(/Name that people see +Acme/)
    expect(questions.map((question) => question.split(/[ :]/)[0])).toEqual([
      'Kind',
      'accountSid',
      'accountSid',
      'serviceSid',
      'authToken',
      'authToken',
    ])
    expect(stderr).toContain('accountSid does not look right.')
    const secret = join(home.directory, 'secrets/twilio-verify-authToken')
    expect(readFileSync(file, 'utf8')).toBe(
      [
        '[[providers]]',
        'name = "twilio-verify"',
        'kind = "twilio-verify"',
        `baseUrl = "${carrier.url}"`,
        `accountSid = "${accountSid}"`,
        `serviceSid = "${verifyServiceSid}"`,
        `authTokenFile = "${secret}"`,
        '',
      ].join('\n'),
    )
    expect(readFileSync(secret, 'utf8')).toBe('token-of-twilio\n')
    expect(
      [secret, join(home.directory, 'secrets'), file].map((path) => statSync(path).mode & 0o777),
    ).toEqual([0o600, 0o700, 0o600])
    expect(stdout + stderr).not.toContain('token-of-twilio')
    expect(carrier.messages).toEqual([])
    expect((await home.otpd(['config', 'check', '--config', file])).exitCode).toBe(0)
  })

  test('takes a variable for a secret, adds to a file, and numbers the name', async () => {
    writeFileSync(file, '[server]\nlisten = "127.0.0.1:8081"', { mode: 0o640 })
    const env = { TWILIO_TOKEN: 'token' }
    for (const expected of ['twilio-verify', 'twilio-verify-2']) {
      const { exitCode, stdout } = await add([...verify(), ...given('authTokenEnv=TWILIO_TOKEN'), '--json'], {
        env,
      })
      expect(exitCode).toBe(0)
      expect(JSON.parse(stdout).data).toMatchObject({ name: expected, configFile: file, secretFiles: [] })
    }
    const text = readFileSync(file, 'utf8')
    expect(text).toStartWith('[server]\nlisten = "127.0.0.1:8081"\n\n[[providers]]\nname = "twilio-verify"\n')
    expect(text).toContain('\n\n[[providers]]\nname = "twilio-verify-2"\n')
    expect(text).not.toContain('token"')
    expect(statSync(file).mode & 0o777).toBe(0o640)
  })

  test('writes nothing if the account is faulty, unless it is not to be tried', async () => {
    carrier.service.custom_code_enabled = false
    const args = [...verify(), ...given('authTokenEnv=TWILIO_TOKEN')]
    const { exitCode, stderr } = await add(args, { env: { TWILIO_TOKEN: 'token' } })
    expect(exitCode).toBe(8)
    expect(stderr).toContain('The Verify Service does not take custom codes. Nothing was written.')
    expect(existsSync(file)).toBe(false)
    const skipped = await add([...args, '--skip-check'])
    expect([skipped.exitCode, skipped.stderr]).toEqual([0, expect.stringContaining('It was not tried.')])
    expect(existsSync(file)).toBe(true)
  })

  test('wraps a long hint above its question on a terminal', async () => {
    const { stderr, questions } = await add([], { answers: [null], columns: 40 })
    expect(questions).toEqual(['Kind: '])
    expect(stderr).toStartWith('twilio, twilio-verify, vonage-sms,\n')
    expect(stderr.split('\n').every((line) => line.length <= 40 || line.startsWith('Error'))).toBe(true)
  })

  test('--print shows the table, asks for no secret, tries nothing and writes nothing', async () => {
    const { exitCode, stdout, questions } = await add([...verify(), ...given('feedback=false'), '--print'], {
      answers: ['authToken'],
    })
    expect([exitCode, questions]).toEqual([0, [expect.stringContaining('authToken or apiKeySid')]])
    expect(stdout).toContain('feedback = false\n')
    expect(stdout).toContain(`authTokenFile = "${join(home.directory, 'secrets/twilio-verify-authToken')}"`)
    expect(readdirSync(home.directory)).toEqual([])
    expect(carrier.calls).toEqual([])
  })

  test.each([
    [['nope'], 'There is no kind nope.'],
    [['twilio', ...given('authToken=abc')], 'which the history of your shell would keep'],
    [['twilio', ...given('tokn=abc')], '--set tokn is no setting of twilio.'],
    [['twilio', ...given('from')], '--set from is no setting of twilio.'],
    [['twilio', ...given('from=a', 'from=b')], '--set from is given twice.'],
    [['twilio', ...given('feedback=no')], '--set feedback must be true or false.'],
    [['twilio', ...given('authTokenEnv=NOPE')], 'The environment variable NOPE is empty or not set here'],
    [['twilio', ...given('authTokenFile=nope')], 'The file nope cannot be read.'],
    [['twilio', '--name', 'Main'], '--name must have at most 32 characters'],
    [['twilio', '--name', 'inbox'], 'not be inbox'],
    [['prelude'], 'Pass --set apiTokenEnv=VARIABLE. A secret can also be in a file: nameFile=PATH.'],
    [
      ['twilio-verify'],
      'Pass --set accountSid=VALUE --set serviceSid=VALUE --set authTokenEnv=VARIABLE or --set apiKeySid=VALUE.',
    ],
  ])('%j is refused: %s', async (args, message) => {
    const { exitCode, stderr } = await add(args, { input: '' })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
    expect(readdirSync(home.directory)).toEqual([])
  })

  test('leaves a file with problems, a taken secret file and a taken name alone', async () => {
    const args = [...verify(), ...given('authTokenEnv=TWILIO_TOKEN'), '--skip-check']
    writeFileSync(file, 'listne = "127.0.0.1:1"\n')
    expect((await add(args)).stderr).toContain('The configuration has one problem.')
    expect(readFileSync(file, 'utf8')).toBe('listne = "127.0.0.1:1"\n')
    writeFileSync(file, '')
    mkdirSync(join(home.directory, 'secrets'))
    writeFileSync(join(home.directory, 'secrets/twilio-verify-authToken'), 'other')
    const taken = await add([...verify(), '--skip-check'], { answers: ['authToken', 'token'] })
    expect([taken.exitCode, taken.stderr]).toEqual([8, expect.stringContaining('Choose another --name')])
    expect(readFileSync(join(home.directory, 'secrets/twilio-verify-authToken'), 'utf8')).toBe('other')
    expect(readFileSync(file, 'utf8')).toBe('')
    expect((await add(args)).exitCode).toBe(0)
    const again = await add([...args, '--name', 'twilio-verify'])
    expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining('already has a provider')])
  })
})
