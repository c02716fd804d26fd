import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'
import { startAwsNotify } from '../helpers/carriers/aws-notify-server.ts'
import { startSmsGate } from '../helpers/carriers/sms-gate-server.ts'
import { createHome } from '../cli/cli-fixture.ts'

/** The guide "From nothing to a real SMS": its tables, with `otpd provider test`, against servers that speak the protocols. */

const home = createHome()
const folder = mkdtempSync(join(tmpdir(), 'otpd-real-sms-'))
const aws = startAwsNotify()
const phone = startSmsGate('sms', 'pa:ss"wörd')
afterAll(async () => {
  home.remove()
  rmSync(folder, { recursive: true })
  await aws.stop()
  await phone.stop()
})

const tables = codeBlocks(readDocument('src/docs/real-sms.md'), 'toml')

async function sendTest(name: string, table: string | undefined, env: Record<string, string> = {}) {
  const config = join(folder, `${name}.toml`)
  writeFileSync(config, table ?? '')
  const args = ['provider', 'test', name, '+14155550123', '--config', config]
  const { exitCode, stdout, stderr } = await home.otpd(args, { env })
  return { exitCode, text: stdout + stderr }
}

test('the first table sends through AWS Notify', async () => {
  aws.configuration.NotifyConfigurationId = 'nc-1234567890abcdef0'
  writeFileSync(join(folder, 'key'), 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n', { mode: 0o600 })
  const table = tables[0]?.replace('secrets/aws-notify-secretAccessKey', 'key')
  const { exitCode, text } = await sendTest('aws-notify', `${table}baseUrl = "${aws.url}"\n`)
  expect([exitCode, text]).toEqual([0, expect.stringContaining('✓ aws-notify: accepted')])
  expect(aws.messages).toMatchObject([{ to: '+14155550123', code: '000000', channel: 'sms' }])
  expect(JSON.parse(aws.calls[0]?.body ?? '')).toMatchObject({
    NotifyConfigurationId: 'nc-1234567890abcdef0',
    TemplateId: 'notify-code-verification-english-001',
    TemplateVariables: { code: '000000' },
  })
})

test('the second table sends through the phone, and refuses a wrong password', async () => {
  const guide = readDocument('src/docs/real-sms.md')
  const headers = /echo '([^']+)' > secrets\/phone-headers/.exec(guide)?.[1] ?? ''
  mkdirSync(join(folder, 'secrets'))
  writeFileSync(join(folder, 'secrets/phone-headers'), `${headers}\n`)
  const table = tables[1]?.replace('http://127.0.0.1:8090', phone.url)
  const { exitCode, text } = await sendTest('phone', table, { SMS_GATEWAY_PASSWORD: 'pa:ss"wörd' })
  expect([exitCode, text]).toEqual([0, expect.stringContaining('✓ phone: accepted')])
  expect(text).toContain(phone.messages[0]?.messageId ?? 'no message')
  expect(phone.messages).toMatchObject([{ to: '+14155550123', code: '000000' }])
  expect(JSON.parse(phone.calls[0]?.body ?? '')).toMatchObject({ ttl: 300, priority: 100 })
  const refused = await sendTest('phone', table, { SMS_GATEWAY_PASSWORD: 'wrong' })
  expect([refused.exitCode, refused.text]).toEqual([8, expect.stringContaining('auth_failed')])
  expect(refused.text).not.toContain('wrong')
})
