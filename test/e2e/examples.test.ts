import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { totpCode, totpStep } from '../../src/domain/model/totp.ts'
import { signWebhook } from '../../src/shared/webhook-signature.ts'
import { authToken, startGateway, createTwilioSettings } from '../delivery/gateway.ts'
import { decodeBase32 } from '../helpers/base32.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'
import { createHome } from '../cli/cli-fixture.ts'
import { runCommand, type RunResult } from '../helpers/run-command.ts'
import { binaryPath, runToEnd, startServer, type RunningServer } from '../helpers/binary.ts'

/** A PNG image of one pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

let server: RunningServer
let environment: Record<string, string>
let receiver: WebhookReceiver
const gateway = startGateway()

beforeAll(async () => {
  receiver = await startReceiver()
  server = await startServer({ env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', OTPD_SEND_PER_MINUTE: '0' } })
  const bin = join(server.home, 'bin')
  mkdirSync(bin)
  symlinkSync(binaryPath, join(bin, 'otpd'))
  writeFileSync(join(server.home, 'password'), 'correct horse battery\n')
  writeFileSync(join(server.home, 'passwords'), 'correct horse battery\nanother correct horse\n')
  writeFileSync(join(server.home, 'twilio'), authToken)
  const texts = { en: '{code} confirms {amount} to {payee}.' }
  writeFileSync(join(server.home, 'payment.json'), JSON.stringify(texts))
  writeFileSync(join(server.home, 'shop.png'), Buffer.from(pixel, 'base64'))
  const { values } = createTwilioSettings('main', gateway.url)
  const settings = Object.entries({ ...values, name: 'main', kind: 'twilio', authTokenFile: 'twilio' })
  const lines = settings.filter(([key]) => key !== 'authToken').map(([key, value]) => `${key} = "${value}"`)
  writeFileSync(join(server.home, 'otpd.toml'), ['[[providers]]', ...lines].join('\n'))
  environment = {
    OTPD_CONFIG: join(server.home, 'otpd.toml'),
    PATH: `${bin}:${process.env.PATH}`,
    HOME: server.home,
    OTPD_SERVER: server.url,
    OTPD_DATA_DIR: server.dataDir,
  }
})

afterAll(async () => {
  await server.stop()
  await gateway.stop()
  await receiver.stop()
})

/** Commands of the program itself, and lines that only a shell understands. */
const needsShell = /^otpd (console|demo|restore|upgrade)\b|^(?!otpd )|[^\w@./:=+, -]/

/** Runs a line as a shell does, in this process if it can: starting the program takes most of the time. */
async function runLine(line: string, env: Record<string, string> = {}): Promise<RunResult> {
  const variables = { ...environment, ...env }
  if (needsShell.test(line)) return runToEnd(['sh', '-c', line], { env: variables, cwd: server.home })
  const [, ...args] = line.split(' ')
  return runCommand(variables.HOME ?? server.home, args, { env: variables, cwd: server.home })
}

/** Prints help in this process: starting the program for each command would take a fifth of the test's time. */
const terminal = createHome()
afterAll(() => terminal.remove())
const helps = new Map<string, Promise<string>>()
/** Reads the help of a command, which is printed once. */
function readHelp(command: string): Promise<string> {
  const printed = helps.get(command) ?? printHelp(command)
  helps.set(command, printed)
  return printed
}
const printHelp = async (command: string) =>
  (await terminal.otpd([...command.split(' ').filter(Boolean), '--help'])).stdout

const examplesIn = (help: string) =>
  (help.split('\nExamples:\n')[1]?.split('\n\n')[0] ?? '').split('\n').flatMap((line) => line.trim() || [])

const commandsIn = (help: string) =>
  [...help.matchAll(/^\w+:\n((?: {2}.*\n?)+)/gm)]
    .filter(([heading]) => !/^(Usage|Arguments|Flags|Examples)/.test(heading))
    .flatMap(([, lines]) =>
      [...(lines ?? '').matchAll(/^ {2}([a-z][\w-]*) /gm)].map(([, name]) => name ?? ''),
    )

/** Lists every command that does something itself, in the order of the help. */
async function listLeafCommands(path = ''): Promise<string[]> {
  const help = await readHelp(path.trim())
  const subcommands = commandsIn(help)
  if (subcommands.length === 0) return [path.trim()]
  const below = await Promise.all(
    subcommands.filter((name) => name !== 'help').map((name) => listLeafCommands(`${path} ${name}`)),
  )
  const actsItself = help.includes('\nArguments:\n')
  return [...(actsItself ? [path.trim()] : []), ...below.flat()]
}

/** Commands to run first and last, because of what others need; the rest run in the order of the help. */
const first = ['admin create', 'login', 'project create', 'app create', 'template set', 'otp send']
const last = [
  'template delete',
  'app rotate',
  'rotate',
  'app delete',
  'profile password',
  'logout',
  'admin reset-password',
]

/** Runs a command until it says that it waits for Ctrl-C, then sends it. */
async function shellUntilCtrlC(line: string) {
  const child = Bun.spawn(['sh', '-c', `exec ${line}`], {
    env: environment,
    cwd: server.home,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  let stderr = ''
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    stderr += chunk
    if (stderr.includes('(Ctrl+C to quit)')) child.kill('SIGINT')
  }
  const exitCode = await child.exited
  return { stderr, exitCode: exitCode === 130 ? 0 : exitCode || 1 }
}

const isEndless = (line: string) => /(logs|inbox) --tail|listen --forward-to/.test(line)

/** Examples that fail in this test: without a terminal some cannot prompt, and a resend would have to wait 30 s. */
const expectedExitCodes: Record<string, number> = {
  'otpd login': 2,
  // The server uses its own accounts.
  'otpd login --device': 2,
  // There is no such file.
  'otpd login --server https://otp.example.com --token-stdin < token': 2,
  // It prompts for what is missing, and tries the provider, whose token is not set.
  'otpd provider add aws-notify --config otpd.toml': 2,
  'otpd provider add twilio --set accountSid=AC… --set authTokenEnv=TWILIO_TOKEN --set from=+15005550006': 2,
  // The server is not in development mode.
  'otpd otp prove - --phone +14155550100 --env-file .env.otpd < token': 2,
  'otpd otp test-proof +14155550100 --env-file .env.otpd | otpd otp prove - --env-file .env.otpd': 2,
  // There is no folder of releases.
  'otpd upgrade --check': 2,
  'otpd upgrade': 2,
  'otpd upgrade --from /mnt/otpd-releases': 5,
  // The server has no destination of alerts.
  'otpd alerts test': 2,
  'otpd alerts test email': 2,
  // The console needs a terminal.
  'otpd console': 2,
  'otpd console --read-only': 2,
  // A server is running.
  'otpd migrate up': 6,
  // There is no PostgreSQL database.
  'otpd migrate to-postgres --dry-run': 2,
  'otpd migrate to-postgres': 2,
  'otpd migrate to-postgres --yes': 2,
  // There is no bucket.
  'OTPD_BACKUP_TO=s3://acme-backups/otpd otpd backup --prune': 2,
  'otpd backup list --from s3://acme-backups/otpd': 6,
  'otpd restore latest --yes': 6,
  'otpd restore --from s3://acme-backups/otpd --yes': 6,
  'otpd restore otpd-last-year.db --master-key-file old-master.key --yes': 6,
  'otpd otp resend "$REQUEST_ID" --env-file .env.otpd': 7,
}

test('every example of every help text works as printed', async () => {
  const all = await listLeafCommands()
  expect(all.length).toBeGreaterThan(20)
  const middle = all.filter((command) => ![...first, ...last, 'serve'].includes(command))
  const failures: string[] = []
  for (const command of [...first, ...middle, ...last]) {
    const examples = examplesIn(await readHelp(command))
    if (examples.length === 0) failures.push(`${command} has no examples`)
    for (const example of examples) {
      const line = await fillPlaceholders(example)
      const result = isEndless(line) ? await shellUntilCtrlC(line) : await runLine(line)
      if (result.exitCode !== (expectedExitCodes[example] ?? 0)) failures.push(`${example}\n${result.stderr}`)
    }
  }
  expect(failures).toEqual([])
}, 300_000)

/** Replaces the server address, and the variables of an example by new ids and tokens. */
async function fillPlaceholders(example: string) {
  const line = example
    .replaceAll('http://127.0.0.1:8080', server.url)
    .replaceAll('https://shop.example.com/hooks', receiver.url)
    // The code of the examples verifies in a test application.
    .replace('--env live --env-file .env.otpd', '--env test --env-file .env.otpd')
  if (line.includes('bob@example.com'))
    await runLine('otpd admin create --email bob@example.com --password-stdin < password')
  if (line.includes('$WEBHOOK_ID')) {
    const webhookId = await createWebhook()
    const deliveryId = line.includes('$DELIVERY_ID') ? await waitForDeliveryId(webhookId) : ''
    return line.replace('$WEBHOOK_ID', webhookId).replace('$DELIVERY_ID', deliveryId)
  }
  if (line.includes('$REQUEST_ID')) {
    const { stdout } = await runLine('otpd otp send +14155550100 --env-file .env.otpd --json')
    return line.replace('$REQUEST_ID', JSON.parse(stdout).data.requestId)
  }
  if (line.includes('$SESSION_ID')) {
    const create =
      'otpd otp session create --return-url https://shop.example/back --env-file .env.otpd --json'
    return line.replace('$SESSION_ID', JSON.parse((await runLine(create)).stdout).data.id)
  }
  if (line.includes('$MESSAGE_ID')) {
    const { stdout } = await runLine('otpd otp deliver +14155550100 907155 --env-file .env.otpd --json')
    return line.replace('$MESSAGE_ID', JSON.parse(stdout).data.id)
  }
  if (line.includes('reset-totp ada@example.com')) await enableTotpOfAda()
  if (line.includes('totp enable --code')) return line.replace('123456', await proposeTotp())
  if (line.includes('totp disable --code')) return line.replace('123456', nextTotpCode())
  if (line.includes('delivery.headers')) writeDelivery()
  if (!line.includes('--setup-token-file')) return line
  // Elsewhere than in the example: the server removes its own file, because there is an account.
  await runLine('otpd admin setup-token > "$HOME/setup-token"')
  const flags = '--email eve@example.com --password-stdin < password'
  return `${line.replace('$OTPD_DATA_DIR', '$HOME')} ${flags}`
}

let totp: { secret: Uint8Array; step: number } = { secret: new Uint8Array(), step: 0 }

/** Proposes a second factor. @returns the code that confirms it */
async function proposeTotp(env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await runLine('otpd profile totp enable --json', env)
  totp = { secret: decodeBase32(JSON.parse(stdout).data.secret), step: 0 }
  return nextTotpCode()
}

/** Enables the second factor of an account that is not logged in otherwise. */
async function enableTotpOfAda() {
  const env = { HOME: join(server.home, 'ada') }
  mkdirSync(env.HOME, { recursive: true })
  await runLine('otpd login --email ada@example.com --password-stdin < password', env)
  await runLine(`otpd profile totp enable --code ${await proposeTotp(env)}`, env)
}

/** Returns a code that was not used before: each is accepted once, and one step early too. */
function nextTotpCode(): string {
  totp.step = Math.max(totpStep(Date.now()), totp.step + 1)
  return totpCode(totp.secret, totp.step)
}

async function createWebhook() {
  const listed = await runLine('otpd webhook list --json')
  for (const { id } of JSON.parse(listed.stdout).data) await runLine(`otpd webhook delete ${id} --yes`)
  const { stdout } = await runLine(
    `otpd webhook create --app web --url ${receiver.url} --events otp.sent --json`,
  )
  return JSON.parse(stdout).data.id
}

/** Waits for a delivery and returns its id. */
async function waitForDeliveryId(webhookId: string) {
  const delivered = receiver.waitForCount(receiver.received.length + 1)
  await runLine('otpd otp send +14155550100 --env-file .env.otpd')
  await delivered
  const { stdout } = await runLine(`otpd webhook deliveries ${webhookId} --json`)
  return JSON.parse(stdout).data[0].id
}

/** Writes headers and body of a delivery, as a receiver might have stored them a moment ago. */
function writeDelivery() {
  const [, secret = ''] =
    /OTPD_WEBHOOK_SECRET=(\S+)/.exec(readFileSync(join(server.home, '.env.otpd'), 'utf8')) ?? []
  const message = { id: 'evt_1', timestamp: String(Math.floor(Date.now() / 1000)), body: '{"id":"evt_1"}' }
  const headers = [
    'HTTP/1.1 200 OK',
    `webhook-id: ${message.id}`,
    `webhook-timestamp: ${message.timestamp}`,
    `Webhook-Signature: ${signWebhook(secret, message)}`,
  ]
  writeFileSync(join(server.home, 'delivery.headers'), headers.join('\r\n'))
  writeFileSync(join(server.home, 'delivery.json'), message.body)
}

test('the examples of serve start a server', async () => {
  const examples = examplesIn(await readHelp('serve'))
  expect(examples.length).toBeGreaterThan(1)
  // `test/e2e/tls.test.ts` serves a domain: that needs a certificate authority.
  const local = examples.filter((example) => !example.includes('--domain'))
  for (const [index, example] of local.entries()) {
    const started = await startServer({
      args: example.split(' ').slice(2),
      dataDir: example.includes('--dev') ? undefined : join(server.home, `data-${index}`),
    })
    expect(await started.stop()).toBe(0)
  }
})
