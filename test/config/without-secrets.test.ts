import { expect, test } from 'bun:test'
import { withoutSecrets } from '../../src/config/without-secrets.ts'
import { loadFile, requireConfig } from '../helpers/config.ts'

const file = `
[webhooks]
allow = ["10.0.0.0/8", "hooks.internal"]

[[providers]]
name = "main"
kind = "twilio"
accountSid = "AC00000000000000000000000000000000"
authTokenEnv = "TWILIO_TOKEN"
from = "+12025550100"

[[routes]]
channel = "sms"
providers = ["main"]
`

test('a configuration without secrets has no secret, and survives JSON', () => {
  const env = { HOME: '/home/ada', TWILIO_TOKEN: 'a-secret-of-twilio', OTPD_MASTER_KEY: '5b1c9e02'.repeat(8) }
  const config = requireConfig(loadFile(file, { env }))
  const cleaned = withoutSecrets(config)
  const text = JSON.stringify(cleaned)
  expect(text).not.toContain('a-secret-of-twilio')
  expect(text).not.toContain('5b1c9e02')
  expect(text).toContain('AC00000000000000000000000000000000')
  expect(JSON.parse(text)).toEqual(cleaned)
  expect(cleaned).not.toHaveProperty('database')
})
