import { afterAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBinary } from '../helpers/binary.ts'
import { runInTerminal } from '../helpers/terminal.ts'

const home = mkdtempSync(join(tmpdir(), 'otpd-config-files-'))
const pipe = join(home, 'pipe')
spawnSync('mkfifo', [pipe])
mkdirSync(join(home, 'folder'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

const provider = `[prices]
currency = "EUR"
[[providers]]
name = "main"
kind = "twilio"
accountSid = "AC${'0'.repeat(32)}"
from = "+15005550006"
authTokenEnv = "TOKEN"
`
const pipeFault = `${pipe} is a pipe or a device, not a file.`

test.each([
  ['prices of a provider', `${provider}prices = "pipe"`, pipeFault],
  ['prices in a device', `${provider}prices = "/dev/zero"`, '/dev/zero is a pipe or a device, not a file.'],
  ['prices in a folder', `${provider}prices = "folder"`, `${home}/folder is a folder, not a file.`],
  ['a secret of a provider', provider.replace('Env = "TOKEN"', 'File = "pipe"'), pipeFault],
  ['a certificate and its key', '[tls]\ncertFile = "pipe"\nkeyFile = "pipe"', pipeFault],
  [
    'the password of the first account',
    '[auth]\nadminEmail = "a@example.com"\nadminPasswordFile = "pipe"',
    pipeFault,
  ],
  ['the master key', '[server]\nmasterKeyFile = "pipe"', pipeFault],
  ['the URL of the database', '[database]\nurlFile = "pipe"', pipeFault],
  [
    'the secret of challenges',
    '[guard.challenge]\nkind = "turnstile"\nsiteKey = "k"\nsecretFile = "pipe"',
    pipeFault,
  ],
])('%s: a pipe, a device or a folder is refused', async (_name, config, fault) => {
  writeFileSync(join(home, 'otpd.toml'), config)
  const { exitCode, stdout, stderr } = await runBinary(
    home,
    ['config', 'check', '--config', join(home, 'otpd.toml')],
    { env: { TOKEN: 'secret' } },
  )
  expect(stdout + stderr).toContain(fault)
  expect(exitCode).not.toBe(0)
})

test('a pipe is not read as configuration', async () => {
  const { stdout, stderr, exitCode } = await runBinary(home, ['config', 'check', '--config', pipe])
  expect(stdout + stderr).toContain(pipeFault)
  expect(exitCode).not.toBe(0)
})

test('a program under test has its default data directory below its home, also as root', async () => {
  const args = ['config', 'show', '--json']
  const terminal = runInTerminal(home, args)
  await terminal.waitForExit()
  for (const output of [(await runBinary(home, args)).stdout, terminal.text()])
    expect(output).toContain(`"${home}/.local/share/otpd"`)
})
