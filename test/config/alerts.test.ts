import { describe, expect, test } from 'bun:test'
import { withoutSecrets } from '../../src/config/without-secrets.ts'
import { load, loadFile, requireConfig } from '../helpers/config.ts'

const env = {
  HOME: '/home/ada',
  SMTP_PASSWORD: 'correct-horse',
  SLACK_URL: 'https://hooks.slack.com/services/T0/s3cret',
}
const email = `[[alerts]]
kind = "email"
to = "ops@example.com"
from = "otpd <otpd@example.com>"
host = "smtp.example.com"
username = "otpd"
passwordEnv = "SMTP_PASSWORD"
`
const slack = `[[alerts]]
kind = "slack"
min = "critical"
urlEnv = "SLACK_URL"
`

describe('alerts', () => {
  test('are none by default', () => {
    expect(requireConfig(load()).alerts).toEqual([])
  })

  test('go to destinations with a name, a severity and the settings of their kind', () => {
    const file = `${email}\n${slack}\n[[alerts]]\nkind = "ntfy"\nname = "night"\nurl = "https://ntfy.sh/otpd"\n`
    const { alerts } = requireConfig(loadFile(file, { env }))
    expect(alerts.map(({ name, kind, min }) => [name, kind, min])).toEqual([
      ['email', 'email', 'warning'],
      ['slack', 'slack', 'critical'],
      ['night', 'ntfy', 'warning'],
    ])
    expect(alerts[0]?.values).toMatchObject({ to: 'ops@example.com', password: 'correct-horse' })
  })

  test('are posted to the URL as it is written', () => {
    const url = 'https://ops.example.com/hook/?thread=5'
    const { alerts } = requireConfig(loadFile(`[[alerts]]\nkind = "webhook"\nurl = "${url}"`, { env }))
    expect(alerts[0]?.values).toMatchObject({ url })
  })

  test('show neither a password nor the URL of a channel', () => {
    const loaded = loadFile(`${email}caFile = "/ca.pem"\n${slack}`, {
      env,
      files: { '/ca.pem': '-----BEGIN CERTIFICATE-----\nabc' },
    })
    const config = requireConfig(loaded)
    expect(loaded.settings.filter(({ value }) => value === '(set)').map(({ setting }) => setting)).toEqual([
      'alerts.email.password',
      'alerts.email.ca',
      'alerts.slack.url',
    ])
    const cleaned = withoutSecrets(config)
    expect(cleaned.alerts.map(({ name }) => name)).toEqual(['email', 'slack'])
    for (const text of [JSON.stringify(loaded.settings), JSON.stringify(cleaned)]) {
      expect(text).not.toContain('correct-horse')
      expect(text).not.toContain('s3cret')
    }
  })

  test.each([
    ['[[alerts]]', '1 The alert has no kind.'],
    ['[[alerts]]\nkind = "slak"', '2 There is no such alert kind.'],
    [
      '[[alerts]]\nkind = "slack"\nurl = "https://hooks.slack.com/a/s3cret"',
      '3 url is a secret and must not be in this file.',
    ],
    ['[[alerts]]\nkind = "webhook"\nurl = "http://ops.example.com"', '3 url is not an https URL.'],
    ['[[alerts]]\nkind = "webhook"\nurl = "https://a:b@ops.example.com"', '3 url is not an https URL.'],
    ['[[alerts]]\nkind = "webhook"\nurl = "https://ops.example.com/#a"', '3 url has a fragment.'],
    ['[[alerts]]\nkind = "ntfy"\nurl = "https://ntfy.sh/a?up=1"', '3 url has a query or a fragment.'],
    [
      '[[alerts]]\nkind = "webhook"\nulr = "https://ops.example.com"',
      '2 url is missing.|3 Alerts of kind webhook have no setting ulr.',
    ],
    ['[[alerts]]\nkind = "ntfy"\nurl = "https://ntfy.sh/a"\nmin = "info"', '4 This is not a severity.'],
    [
      '[[alerts]]\nkind = "ntfy"\nurl = "https://ntfy.sh/a"\nname = "a b"',
      '4 This is not a valid name of an alert.',
    ],
    [`${email}\n${email}`, '10 Another alert is already named email.'],
    [email.replace('ops@example.com', 'ops'), '3 to does not look right.'],
    [email.replace('passwordEnv = "SMTP_PASSWORD"\n', ''), '2 password is missing.'],
    [email.replace('SMTP_PASSWORD', 'NONE'), '7 The environment variable "NONE" is empty or not set.'],
    [`${email}port = 70000`, '8 port does not look right.'],
    [`${email}security = "none"`, '8 security is none, and the SMTP server is on another machine.'],
    [`${email}security = "ssl"`, '8 security is not one of the choices.'],
    ['alerts = "ops@example.com"', '1 alerts must be a list of tables.'],
  ])('%p is refused with its line', (text, expected) => {
    const { config, problems } = loadFile(text, { env })
    expect(config).toBeNull()
    expect(problems.map(({ source, message }) => `${source.split(':').at(-1)} ${message}`).join('|')).toBe(
      expected,
    )
    expect(problems.every(({ remedy }) => remedy !== '')).toBe(true)
    expect(JSON.stringify(problems)).not.toContain('s3cret')
  })

  test('need no secret for commands that send nothing', () => {
    const files = { '/etc/o.toml': `${email}${slack}` }
    const loaded = load({ flags: { config: '/etc/o.toml' }, files }, { use: 'host command' })
    expect(requireConfig(loaded).alerts.map(({ name }) => name)).toEqual(['email', 'slack'])
  })
})
