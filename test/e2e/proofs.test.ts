import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, runToEnd, startServer, type RunningServer } from '../helpers/binary.ts'
import { codeBlocks, commandLines, readDocument } from '../helpers/guide-blocks.ts'

// A server in development mode, and the commands of the guide as a reader types them.

const guide = readDocument('src/docs/proofs.md')
let server: RunningServer

const password = 'correct horse battery'

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-proofs-'))
  writeFileSync(join(home, 'password'), password, { mode: 0o600 })
  const admin = { OTPD_ADMIN_EMAIL: 'ada@example.com', OTPD_ADMIN_PASSWORD_FILE: join(home, 'password') }
  const env = { OTPD_DEV: 'true', OTPD_FIREBASE_PROJECTS: '123456789012', ...admin }
  server = await startServer({ home, dataDir: null, env })
  mkdirSync(join(home, 'bin'))
  symlinkSync(binaryPath, join(home, 'bin', 'otpd'))
  await type('otpd login --email ada@example.com --password-stdin', password)
  await type('otpd project create shop')
  await type('otpd app create web --project shop --env live --env-file .env.otpd')
})
afterAll(() => server.stop())

const type = (line: string, input = '') =>
  runToEnd(['sh', '-c', line], {
    cwd: server.home,
    env: {
      HOME: server.home,
      PATH: `${join(server.home, 'bin')}:${process.env.PATH ?? ''}`,
      OTPD_SERVER: server.url,
    },
    input,
  })

test('the command of the guide verifies a phone by a token of the test issuer', async () => {
  const [block = ''] = codeBlocks(guide, 'sh', '## Without a phone')
  const [line = ''] = commandLines(block)
  const proved = await type(line)
  expect(proved).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^✓ \+14155550100 is verified \(/),
  })
  const listed = await type('otpd otp list')
  expect(listed.stdout).toMatch(/\+14155550100 .*✓ verified .*a proof/)
})

test('the backend of the guide takes a token, and falls back to a code without one', async () => {
  const library = join(server.home, 'node_modules/otpd')
  mkdirSync(library, { recursive: true })
  await runToEnd(
    [process.execPath, join(import.meta.dir, '../../cli/build-client.ts'), '--outdir', library],
    {
      env: { PATH: process.env.PATH ?? '' },
    },
  )
  const [backend = '', fallBack = ''] = codeBlocks(guide, 'ts')
  const login = `export async function logIn(token: string | null, nonce: string, typedPhone: string, clientIp: string) {
    ${fallBack}
    return phone
  }`
  writeFileSync(join(server.home, 'backend.ts'), `${backend}\n${login}`)
  const token = (await type('otpd otp test-proof +14155550103 --nonce n1 --env-file .env.otpd')).stdout.trim()
  const calls = [
    [token, 'n1'],
    [token, 'n1'],
    ['rubbish', 'n1'],
    [null, 'n1'],
  ]
  const program = `import { logIn } from './backend.ts'
    const phones = []
    for (const [token, nonce] of ${JSON.stringify(calls)}) phones.push(await logIn(token, nonce, '+14155550104', '203.0.113.7'))
    console.log(JSON.stringify(phones))`
  writeFileSync(join(server.home, 'log-in.ts'), program)
  const done = await type(`"${process.execPath}" --env-file=.env.otpd log-in.ts`)
  expect(done).toMatchObject({ exitCode: 0, stdout: '["+14155550103",null,null,null]\n' })
  const listed = await type('otpd otp list --phone +14155550104')
  expect(listed.stdout.match(/pending/g)).toHaveLength(3)
})

test('a token counts once, for the number and the nonce that were asked for', async () => {
  const token = (await type('otpd otp test-proof +14155550101 --nonce n1 --env-file .env.otpd')).stdout.trim()
  const prove = (flags = '') => type(`otpd otp prove ${token} ${flags} --env-file .env.otpd`)
  for (const [flags, message] of [
    ['--phone +14155550102', 'The token is of another phone number than the call.'],
    ['--nonce n2', 'The token has another nonce than the call.'],
  ] as const)
    expect(await prove(flags)).toMatchObject({ exitCode: 6, stderr: expect.stringContaining(message) })
  expect(await prove('--nonce n1 --phone +14155550101')).toMatchObject({ exitCode: 0 })
  expect(await prove()).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('used before') })
})
