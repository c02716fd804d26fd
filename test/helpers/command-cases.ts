import { backupCases } from './backup-cases.ts'
import { guardCases } from './guard-cases.ts'
import { relayCases } from './relay-cases.ts'
import { templateCases } from './template-cases.ts'
import { userCases } from './user-cases.ts'
import type { CommandCase, CommandContext } from './command-case.ts'

const env = ['--env-file', 'web.env']
const password = 'correct horse battery'
const nextHint = (command: string) => new RegExp(`Next: ${command}`)

/** Cases for every command, ordered so that each finds what it needs. */
export const commandCases: [
  path: string,
  prepare: (context: CommandContext) => CommandCase | Promise<CommandCase>,
][] = [
  ['version', () => ({ args: [], stdout: /^otpd \d+\.\d+\.\d+ \(.+\)\n$/, json: 'own' })],
  ['docs', () => ({ args: [], stdout: /^GUIDE +TITLE\n/, stderr: nextHint('otpd docs'), json: 'own' })],
  [
    'demo',
    () => ({
      args: [],
      stdout:
        /\$ otpd inbox\n.*CODE[^]*\$ otpd otp verify (otp_\w+) \d{6} --env-file \.env\.otpd\n✓ \+14155550132 is verified[^]*\$ otpd otp get \1[^]*→ otp\.sent[^]*✓ otp\.verified[^]*\$ otpd console\n[^]*1 Overview[^]* 100%/,
      stderr:
        /^A server of its own on a free port.*\n\nThe server is stopped, and its data removed\.\nNext: otpd serve\n/,
      json: 'own',
    }),
  ],
  ['man', () => ({ args: [], stdout: /^\.TH OTPD 1 "/, json: 'same', isWide: true })],
  ['completion', () => ({ args: ['bash'], stdout: /^# otpd in bash/, json: 'same', isWide: true })],
  [
    'admin create',
    () => ({
      args: ['--email', 'ada@example.com', '--name', 'Ada', '--password-stdin'],
      input: password,
      stdout: /^✓ Account ada@example\.com\n {2}Id +dev_\w+\n {2}Name +Ada\n {2}Plan +free\n$/,
      stderr: nextHint('otpd login --server \\S+ --email ada@example\\.com'),
      json: 'own',
    }),
  ],
  [
    'login',
    () => ({
      args: ['--email', 'ada@example.com', '--password-stdin'],
      input: password,
      stdout: '',
      stderr: /✓ Logged in to .* as ada@example\.com\n {2}Saved in ~\/\.config\/otpd.*\nNext: otpd whoami\n$/,
      json: 'same',
    }),
  ],
  [
    'whoami',
    () => ({
      args: [],
      stdout:
        /^ada@example\.com\n(.*\n)+ {2}Virtual phone +\+999\d{10}\n(.*\n)+ {2}Session ends +.*, if unused\n/,
    }),
  ],
  ['auth token', () => ({ args: [], stdout: /^[\w-]+\.[\w-]+\.[\w-]+\n$/, json: 'own', isWide: true })],
  ['health', () => ({ args: [], stdout: /^● .* is operational\n$/ })],
  [
    'project create',
    ({ project }) => ({
      args: [project],
      stdout: /^✓ Project p-\w+\n/,
      stderr: nextHint('otpd app create web'),
    }),
  ],
  [
    'project list',
    () => ({ args: [], stdout: /^NAME +APPS +CREATED.* +ID\n/, onTerminal: { stdout: / just now/ } }),
  ],
  ['__complete', ({ project }) => ({ args: ['project'], stdout: `${project}\n`, json: 'same' })],
  ['project get', ({ project }) => ({ args: [project], stdout: /^p-\w+\n {2}Id +prj_/ })],
  [
    'project update',
    ({ project }) => ({ args: [project, '--description', 'A'], stdout: /^✓ Project updated\n/ }),
  ],
  [
    'app create',
    ({ project }) => ({
      args: ['spare', '--project', project, '--env', 'live'],
      stdout: /^✓ Application spare \(live\)\n {2}Id +app_\w+\n {2}Client ID +ph_live_client_/,
      stderr: /not shown again/,
    }),
  ],
  ['app list', () => ({ args: [], stdout: /^NAME +PROJECT +ENV +STATUS +ID\n.* ● active +app_.*\n$/ })],
  ['app get', () => ({ args: ['spare'], stdout: /^spare\n(.*\n)+ {2}Environment +live\n/ })],
  [
    'app update',
    () => ({ args: ['spare', '--otp-ttl', '120'], stdout: /^✓ (.*\n)+ {2}Code lifetime +2 min\n/ }),
  ],
  [
    'app disable',
    () => ({
      args: ['spare', '--yes'],
      stdout: '✓ Application spare is disabled\n',
      stderr: nextHint('otpd app enable app_'),
    }),
  ],
  ['app enable', () => ({ args: ['spare'], stdout: '✓ Application spare is active\n' })],
  [
    'app env',
    () => ({ args: ['spare', '--for', 'supabase'], stdout: /^GOTRUE_/, json: 'own', isWide: true }),
  ],
  ['app webhook-secret', () => ({ args: ['spare'], stdout: /^whsec_\w+\n$/ })],
  [
    'app rotate',
    () => ({
      args: ['spare', 'client-secret', '--yes'],
      stdout: /^ph_live_secret_\w+\n$/,
      stderr: /no longer works/,
    }),
  ],
  [
    'rotate',
    () => ({ args: ['spare', 'api', '--yes'], stdout: /^ph_live_api_\w+\n$/, stderr: /no longer works/ }),
  ],
  ['app delete', () => ({ args: ['spare', '--yes'], stdout: '✓ Application spare deleted\n' })],
  [
    'otp send',
    () => ({
      args: ['+14155550100', ...env],
      stdout:
        /^✓ Code for \+14155550100 kept in the inbox \(test .*\n {2}Request +otp_\w+\n {2}Code +424242\n {2}Expires +\d{4}/,
      stderr: nextHint('otpd otp verify otp_\\w+ 424242 --env-file web\\.env'),
      onTerminal: { stdout: / {2}Expires +in (5 min|4 min \d+ s)\n/ },
      savesAs: 'requestId',
    }),
  ],
  [
    'otp resend',
    ({ requestId }) => ({ args: [requestId, ...env], stdout: '', stderr: /Try again in \d+ s/, exitCode: 7 }),
  ],
  [
    'otp verify',
    ({ requestId }) => ({ args: [requestId, '424242', ...env], stdout: /^✓ \+14155550100 is verified \(/ }),
  ],
  [
    'otp cancel',
    async ({ send }) => ({
      args: [await send('+14155550101'), ...env],
      stdout: '✓ The code for +14155550101 is canceled\n',
    }),
  ],
  ...relayCases,
  ['otp list', () => ({ args: [], stdout: /^PHONE +STATUS +DELIVERY +SENT.*\n(.*\n)+.* ✓ verified/ })],
  ['otp get', ({ requestId }) => ({ args: [requestId], stdout: /^\+14155550100\n(.*\n)+ {2}Verified / })],
  [
    'inbox',
    async ({ send }) => {
      await send('+14155550102')
      return { args: [], stdout: /^PHONE +CODE +SENT.* +REQUEST\n.*424242.*otp_/ }
    },
  ],
  ...userCases,
  ['logs', () => ({ args: [], stdout: /^TIME .*\n(.*\n)*.*✓ otp\.verified .*otp_\w/ })],
  ['analytics', () => ({ args: [], stdout: /^Last 30 days +total +today\nsent +·/ })],
  [
    'webhook create',
    ({ receiverUrl }) => ({
      args: ['--app', 'web', '--url', receiverUrl, '--events', '*'],
      stdout: /^✓ Webhook created\n(.*\n)+ {2}Id +whk_/,
      stderr: nextHint('otpd webhook test whk_'),
      savesAs: 'webhookId',
    }),
  ],
  ['webhook list', () => ({ args: [], stdout: /^URL +STATUS .*ID\n.*● enabled .*whk_/ })],
  ['webhook get', ({ webhookId }) => ({ args: [webhookId], stdout: / {2}Events +all\n/ })],
  [
    'webhook update',
    ({ webhookId }) => ({ args: [webhookId, '--events', 'otp.sent'], stdout: / {2}Events +otp\.sent\n/ }),
  ],
  ['webhook disable', ({ webhookId }) => ({ args: [webhookId], stdout: /is disabled\n$/ })],
  ['webhook enable', ({ webhookId }) => ({ args: [webhookId], stdout: /is enabled\n$/ })],
  ['webhook test', ({ webhookId }) => ({ args: [webhookId], stdout: /← 200 {2}delivered\n$/ })],
  [
    'webhook deliveries',
    async ({ webhookId, waitForDelivery }) => {
      await waitForDelivery(webhookId)
      return { args: [webhookId], stdout: /^EVENT +STATUS +RESULT .*ID\n.* ✓ delivered .*dlv_/ }
    },
  ],
  [
    'webhook redeliver',
    ({ webhookId, deliveryId }) => ({
      args: [webhookId, deliveryId],
      stdout: '✓ otp.sent is queued for delivery again\n',
      stderr: nextHint('otpd webhook deliveries whk_'),
    }),
  ],
  [
    'webhook recover',
    ({ webhookId }) => ({
      args: [webhookId, '--since', '1h'],
      stdout: 'No event was missed in that time.\n',
    }),
  ],
  [
    'webhook verify',
    ({ writeDelivery }) => {
      writeDelivery()
      const files = ['--header-file', 'delivery.headers', '--body-file', 'delivery.json']
      return { args: [...env, ...files], stdout: /^ {2}✓ |^✓ /m, json: 'own' }
    },
  ],
  [
    'webhook listen',
    ({ receiverUrl }) => ({
      args: ['--forward-to', receiverUrl, '--app', 'web'],
      isEndless: true,
      stderr: /^Forwarding events of web at .* to /,
      exitCode: 130,
      json: 'same',
    }),
  ],
  [
    'project delete',
    async ({ project, addProject }) => ({
      args: [await addProject(`${project}-old`), '--yes'],
      stdout: /^✓ Project .* deleted\n$/,
    }),
  ],
  ['webhook delete', ({ webhookId }) => ({ args: [webhookId, '--yes'], stdout: /deleted\n$/ })],
  ['profile get', () => ({ args: [], stdout: /^ada@example\.com\n(.*\n)+ {2}Limits +10 projects/ })],
  ['profile update', () => ({ args: ['--company', 'Engines'], stdout: / {2}Company +Engines\n/ })],
  [
    'profile totp enable',
    () => ({
      args: [],
      stdout: /^Secret {2}[A-Z2-7]{32}\nURI {5}otpauth:\/\/totp\/otpd:ada%40example\.com\?secret=/,
      stderr: nextHint('otpd profile totp enable --code CODE'),
      isWide: true,
    }),
  ],
  [
    'profile totp disable',
    async ({ enableTotp }) => ({ args: ['--code', await enableTotp()], stdout: '✓ TOTP disabled\n' }),
  ],
  [
    'admin reset-totp',
    async ({ enableTotp }) => {
      await enableTotp()
      const stdout = /^✓ TOTP removed from ada@example\.com\n/
      return { args: ['ada@example.com'], stdout, stderr: /the password alone/, json: 'own' }
    },
  ],
  ['api', () => ({ args: ['GET', '/v1/developer/me'], stdout: /^\{"data":\{"id":"dev_/, isWide: true })],
  [
    'context add',
    () => ({
      args: ['here', 'http://127.0.0.1:8080'],
      stdout: '✓ Added here (http://127.0.0.1:8080)\n',
      stderr: nextHint('otpd context use here'),
      json: 'own',
    }),
  ],
  ['context list', () => ({ args: [], stdout: /^ +NAME +SERVER +LOGGED IN\n/, json: 'own' })],
  [
    'context use',
    () => ({ args: ['here'], stdout: /^✓ Using here/, stderr: /OTPD_SERVER is set/, json: 'own' }),
  ],
  ['context remove', () => ({ args: ['here'], stdout: /^✓ Removed here/, json: 'own' })],
  [
    'token create',
    () => ({
      args: ['ci', '--scope', 'otp:read', '--expires', 'never'],
      stdout: /^otpd_pat_[0-9a-f]{48}\n$/,
      stderr: /✓ API token ci: otp:read; expires never\n {2}Store it now/,
    }),
  ],
  ['token list', () => ({ args: [], stdout: /^NAME +SCOPES .*EXPIRES.* +ID\n.* tok_/ })],
  ['token revoke', () => ({ args: ['ci', '--yes'], stdout: '✓ API token ci revoked\n' })],
  ['audit', () => ({ args: [], stdout: /^WHEN \(\S+\) +ACTION +TARGET +FROM/ })],
  [
    'audit verify',
    () => ({ args: [], stdout: /^✓ The audit trail is unbroken\n/, json: 'own', hasSteps: true }),
  ],
  ['doctor', () => ({ args: [], stdout: /^✓ configuration /m, json: 'own' })],
  [
    'config show',
    () => ({
      args: [],
      stdout: /^SETTING +VALUE +SOURCE\n/,
      stderr: /settings of the running server/,
      json: 'own',
    }),
  ],
  ['config check', () => ({ args: [], stdout: /^✓ The configuration is valid/, json: 'own' })],
  ...templateCases,
  [
    'provider list',
    () => ({
      args: [],
      stdout: /^NAME +KIND +CHANNELS +STATE\nmain .*ready/,
      stderr: /providers of the running server/,
      json: 'own',
    }),
  ],
  [
    'provider add',
    () => ({ args: ['prelude', '--print'], stdout: /^\[\[providers\]\]\nname = "prelude"\n/, json: 'own' }),
  ],
  ['provider test', () => ({ args: ['main', '+14155550123'], stdout: /^✓ main: accepted\n/, json: 'own' })],
  ...guardCases,
  [
    'migrate status',
    () => ({ args: [], stdout: /^MIGRATION +STATUS\n0001_initial +applied\n/, json: 'own' }),
  ],
  [
    'migrate to-postgres',
    () => ({ args: [], stdout: '', stderr: /There is no PostgreSQL database to move to\./, exitCode: 2 }),
  ],
  ['migrate up', () => ({ args: [], stdout: '', stderr: /A server is running on /, exitCode: 6 })],
  ...backupCases,
  ['admin list', () => ({ args: [], stdout: /^EMAIL +NAME +STATUS .*ID\n.*dev_/, json: 'own' })],
  ['admin setup-token', () => ({ args: [], stdout: /^st_\S+\n$/, stderr: /Valid once, for /, json: 'own' })],
  [
    'admin set-plan',
    () => ({ args: ['ada@example.com', 'free'], stdout: /^✓ Plan set for ada@example\.com\n/, json: 'own' }),
  ],
  ['admin audit', () => ({ args: [], stdout: /^WHEN \(\S+\) +ACTION +TARGET +FROM/, json: 'own' })],
  [
    'admin unlock',
    // Test applications, which sent to this number, have no limits of a phone.
    () => ({
      args: ['(415) 555-0100', '--country', 'US'],
      stdout: /^\(415\) 555-0100 was not locked: no attempts were counted in \S+\.\n$/,
      json: 'own',
    }),
  ],
  [
    'admin erase',
    () => ({
      args: ['(415) 555-0100', '--country', 'us', '--yes'],
      stdout: /^✓ Erased \(415\) 555-0100 from /,
      stderr: /^Backups /,
      json: 'own',
      isWide: true,
    }),
  ],
  [
    'admin token',
    () => ({ args: ['ada@example.com'], stdout: /^\S+\n$/, stderr: /Valid for /, json: 'own', isWide: true }),
  ],
  ['admin rotate-signing-key', () => ({ args: [], stdout: /^✓ /, stderr: /within 15 minutes/, json: 'own' })],
  [
    'admin rotate-master-key',
    () => ({
      args: ['--yes'],
      stdout: /^✓ The master key was replaced\n {2}Old key +\S+master\.key\.before-\S+\n$/,
      stderr: /Keep a copy/,
      json: 'own',
      hasSteps: true,
    }),
  ],
  [
    'profile password',
    () => ({
      args: ['--password-stdin'],
      input: `${password}\nanother correct horse\n`,
      stdout: '✓ Password changed; every session has ended\n',
      stderr: nextHint('otpd login'),
    }),
  ],
  ['logout', () => ({ args: [], stdout: '', stderr: /^✓ Logged out of /, json: 'same' })],
  [
    'admin reset-password',
    () => ({
      args: ['ada@example.com', '--password-stdin'],
      input: password,
      stdout: /^✓ Password set for ada@example\.com\n/,
      json: 'own',
    }),
  ],
  [
    'admin disable',
    () => ({
      args: ['ada@example.com', '--yes'],
      stdout: /^✓ Disabled/,
      stderr: /admin enable/,
      json: 'own',
    }),
  ],
  ['admin enable', () => ({ args: ['ada@example.com'], stdout: /^✓ Enabled ada@/, json: 'own' })],
  [
    'admin delete',
    () => ({ args: ['ada@example.com', '--yes'], stdout: /^✓ Deleted /, stderr: /Kept under/, json: 'own' }),
  ],
]
