import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { totpCode, totpStep } from '../../src/domain/model/totp.ts'
import { signWebhook } from '../../src/shared/webhook-signature.ts'
import { authToken, startGateway, createTwilioSettings } from '../delivery/gateway.ts'
import { binaryPath, runToEnd, startServer, type RunningServer } from '../helpers/binary.ts'
import type { CommandCase, CommandContext } from '../helpers/command-case.ts'
import { commandCases } from '../helpers/command-cases.ts'
import { decodeBase32 } from '../helpers/base32.ts'
import { runCommand } from '../helpers/run-command.ts'
import { runWithSeparateOutput } from '../helpers/separate-output.ts'
import { runInTerminal } from '../helpers/terminal.ts'
import { startRecordingProxy, type RecordingProxy } from '../helpers/recording-proxy.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

// Every command of the compiled binary in a pipe and on a terminal of 80 columns, and with --json in this process: standard
// output, standard error and the exit code. A command without a case is a failure.

const listLeafCommands = (command: Command, path: string[] = []): string[] =>
  command.commands.length === 0
    ? [path.join(' ')]
    : command.commands.flatMap((sub) => listLeafCommands(sub, [...path, sub.name()]))

/** Commands that have subcommands, and do something without one too. */
const parentCommands = ['alerts', 'audit', 'backup', 'routes']

/** Commands that take over the terminal; they have their own tests below. */
const longRunningCommands = ['serve', 'console']

test('there is a case for every command', () => {
  const program = createProgram(processIo(), async () => {})
  const tested = [...commandCases.map(([path]) => path), ...longRunningCommands]
  expect([...listLeafCommands(program), ...parentCommands].toSorted()).toEqual(tested.toSorted())
})

describe.each(['pipe', 'json', 'terminal'] as const)('%s:', (mode) => {
  let server: RunningServer
  let proxy: RecordingProxy
  let receiver: WebhookReceiver
  let alertReceiver: WebhookReceiver
  const gateway = startGateway()
  let context: CommandContext

  const runCase = (path: string, { args, input, isEndless }: CommandCase) => {
    const words = [...path.split(' '), ...args, ...(mode === 'json' ? ['--json'] : [])]
    const env = {
      OTPD_SERVER: proxy.url,
      OTPD_DATA_DIR: server.dataDir,
      OTPD_CONFIG: join(server.home, '.config/otpd/server.toml'),
      ...(path === 'restore' && { OTPD_MASTER_KEY_FILE: join(server.dataDir, 'master.key') }),
    }
    // The pipe shows what a process adds to that.
    if (mode === 'json' && !isEndless)
      return runCommand(server.home, words, { env, ...(input !== undefined && { input }) })
    const interruptAfter = isEndless ? proxy.waitForStream() : undefined
    return runWithSeparateOutput(server.home, words, {
      env,
      input,
      interruptAfter,
      isTerminal: mode === 'terminal',
    })
  }

  beforeAll(async () => {
    receiver = await startReceiver()
    alertReceiver = await startReceiver()
    server = await startServer({ env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', OTPD_SEND_PER_MINUTE: '0' } })
    proxy = startRecordingProxy(server.url)
    const folder = join(server.home, '.config/otpd')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'twilio'), authToken)
    const { values } = createTwilioSettings('main', gateway.url)
    const settings = Object.entries({ ...values, name: 'main', kind: 'twilio', authTokenFile: 'twilio' })
    const lines = settings.filter(([key]) => key !== 'authToken').map(([key, value]) => `${key} = "${value}"`)
    const alert = ['[[alerts]]', 'kind = "webhook"', `url = "${alertReceiver.url}"`]
    writeFileSync(join(folder, 'server.toml'), ['[[providers]]', ...lines, ...alert].join('\n'))
    process.kill(server.pid, 'SIGHUP')
    await server.waitForLog('delivery reloaded')
    context = createScene()
  })

  afterAll(async () => {
    await server.stop()
    await proxy.stop()
    await gateway.stop()
    await receiver.stop()
    await alertReceiver.stop()
  })

  function createScene(): CommandContext {
    const otpd = async (...args: string[]) => {
      const result = await server.otpd([...args, '--json'], { env: { OTPD_SERVER: proxy.url } })
      if (result.exitCode !== 0) throw new Error(result.stderr)
      return JSON.parse(result.stdout).data
    }
    const send = async (phone: string): Promise<string> =>
      (await otpd('otp', 'send', phone, '--env-file', 'web.env')).requestId
    return {
      project: `p-${mode}`,
      requestId: '',
      messageId: '',
      sessionId: '',
      webhookId: '',
      deliveryId: '',
      receiverUrl: receiver.url,
      send,
      async waitForDelivery(webhookId) {
        const delivered = receiver.waitForCount(receiver.received.length + 1)
        await send('+14155550103')
        await delivered
        return (await otpd('webhook', 'deliveries', webhookId))[0].id
      },
      addProject: async (name) => (await otpd('project', 'create', name)).id,
      async enableTotp() {
        const { secret } = await otpd('profile', 'totp', 'enable')
        const code = totpCode(decodeBase32(secret), totpStep(Date.now()))
        return (await otpd('profile', 'totp', 'enable', '--code', code)).recoveryCodes[0]
      },
      writeDelivery() {
        const file = readFileSync(join(server.home, 'web.env'), 'utf8')
        const [, secret = ''] = /OTPD_WEBHOOK_SECRET=(\S+)/.exec(file) ?? []
        const timestamp = String(Math.floor(Date.now() / 1000))
        const message = { id: 'evt_1', timestamp, body: '{"id":"evt_1"}' }
        const signature = signWebhook(secret, message)
        writeFileSync(
          join(server.home, 'delivery.headers'),
          `webhook-id: evt_1\r\nwebhook-timestamp: ${timestamp}\r\nwebhook-signature: ${signature}`,
        )
        writeFileSync(join(server.home, 'delivery.json'), message.body)
      },
    }
  }

  for (const [path, prepare] of commandCases)
    test(`otpd ${path}`, async () => {
      // Creates the application that sends the codes; no other has this name.
      if (path === 'otp send') await runCase('app create', webApplication(context))
      const commandCase = await prepare(context)
      proxy.bodies.length = 0
      const result = await runCase(path, commandCase)
      const { savesAs } = commandCase
      if (savesAs !== undefined) {
        const prefix = { requestId: 'otp', messageId: 'msg', sessionId: 'ses', webhookId: 'whk' }[savesAs]
        context[savesAs] = new RegExp(`${prefix}_\\w{26}`).exec(result.stdout)?.[0] ?? ''
      }
      if (path === 'webhook deliveries')
        context.deliveryId = /dlv_\w+(…\w+)?/.exec(result.stdout)?.[0] ?? context.deliveryId
      if (mode === 'json') expectJson(commandCase, result)
      else expectText(commandCase, result)
    })

  const webApplication = ({ project }: CommandContext): CommandCase => ({
    args: ['web', '--project', project, '--env', 'test', '--env-file', 'web.env'],
  })

  type CommandResult = Awaited<ReturnType<typeof runWithSeparateOutput>>

  function expectText(
    { stdout = '', stderr = '', exitCode = 0, onTerminal, isWide }: CommandCase,
    result: CommandResult,
  ) {
    const expected = { stdout, stderr, exitCode, ...(mode === 'terminal' && onTerminal) }
    expect(result).toEqual({
      exitCode: expected.exitCode,
      stdout: expected.stdout instanceof RegExp ? expect.stringMatching(expected.stdout) : expected.stdout,
      stderr: expected.stderr instanceof RegExp ? expect.stringMatching(expected.stderr) : expected.stderr,
    })
    if (mode === 'pipe') expect(Bun.stripANSI(result.stdout)).toBe(result.stdout)
    else if (isWide !== true)
      expect(result.stdout.split('\n').filter((line) => Bun.stringWidth(line) > 80)).toEqual([])
  }

  function expectJson({ json, exitCode = 0, hasSteps }: CommandCase, result: CommandResult) {
    expect(result.exitCode).toBe(exitCode)
    if (json === 'same') return
    const [output, emptyStream] =
      exitCode === 0 ? [result.stdout, result.stderr] : [result.stderr, result.stdout]
    const steps = emptyStream.split('\n').filter(Boolean)
    if (hasSteps) expect(steps.map((line) => JSON.parse(line).step)).not.toContain(undefined)
    else expect(emptyStream).toBe('')
    if (json === 'own' || proxy.bodies.length === 0) expect(JSON.parse(output)).toBeObject()
    else expect(proxy.bodies.map((body) => `${body}\n`)).toContain(output)
  }
})

describe('on a terminal:', () => {
  let server: RunningServer

  beforeAll(async () => {
    server = await startServer()
    const create = ['admin', 'create', '--email', 'ada@example.com', '--password-stdin']
    await server.otpd([...create, '--data-dir', server.dataDir], { input: 'correct horse battery' })
  })

  afterAll(() => server.stop())

  const onTerminal = (...args: string[]) =>
    runInTerminal(server.home, args, { env: { OTPD_SERVER: server.url } })

  test('otpd serve prints the next command, and ends with Ctrl-C', async () => {
    const run = runInTerminal(server.home, ['serve', '--dev', '--listen', '127.0.0.1:0'])
    await run.waitFor(/Stop with Ctrl\+C\./)
    expect(run.text()).toMatch(/otpd login .*--setup-token-file \S+\/setup-token/)
    expect(run.text()).not.toContain('st_')
    run.type('\u0003')
    expect(await run.waitForExit()).toBe(0)
  })

  test('otpd serve suggests an alias only if otpd is not in PATH', async () => {
    const greeting = async (path: string) => {
      const run = runInTerminal(server.home, ['serve', '--dev', '--listen', '127.0.0.1:0'], {
        env: { PATH: path },
      })
      await run.waitFor(/Stop with Ctrl\+C\./)
      run.type('\u0003')
      await run.waitForExit()
      return run.text()
    }
    expect(await greeting(server.home)).toContain(`\n    alias otpd=${binaryPath}\n    otpd login `)
    const bin = join(server.home, 'bin')
    mkdirSync(bin)
    symlinkSync(binaryPath, join(bin, 'otpd'))
    expect(await greeting(bin)).not.toContain('alias')
  })

  test('otpd login prompts, and shows no password', async () => {
    const run = onTerminal('login')
    await run.waitFor(/Email: /)
    run.type('ada@example.com\r')
    await run.waitFor(/Password: /)
    run.type('correct horse battery\r')
    expect(await run.waitForExit()).toBe(0)
    expect(run.text()).toContain('✓ Logged in to')
    expect(run.text()).not.toContain('battery')
  })

  test('an action that cannot be undone requires typing the name', async () => {
    await server.otpd(['project', 'create', 'shop'])
    const first = onTerminal('project', 'delete', 'shop')
    await first.waitFor(/Type shop to confirm: /)
    first.type('ship\r')
    expect(await first.waitForExit()).toBe(2)
    expect(first.text()).toContain('That is not shop; nothing was changed.')
    const second = onTerminal('project', 'delete', 'shop')
    await second.waitFor(/Type shop to confirm: /)
    second.type('\u0003')
    expect(await second.waitForExit()).toBe(130)
    const third = onTerminal('project', 'delete', 'shop')
    await third.waitFor(/Type shop to confirm: /)
    third.type('shop\r')
    expect(await third.waitForExit()).toBe(0)
  })

  test('otpd logs --tail, inbox --tail and analytics --watch run until Ctrl-C', async () => {
    for (const args of [
      ['logs', '--tail'],
      ['inbox', '--tail'],
      ['analytics', '--watch'],
    ]) {
      const run = onTerminal(...args)
      await run.waitFor(/Ctrl\+C to quit/)
      run.type('\u0003')
      expect(await run.waitForExit()).toBe(130)
    }
  })

  test('otpd demo leaves nothing behind, also when it fails or is interrupted', async () => {
    const folder = join(server.home, 'temporary')
    mkdirSync(folder)
    for (const [signal, code] of [
      [null, 0],
      ['SIGINT', 130],
      ['SIGTERM', 143],
      ['SIGHUP', 129],
    ] as const) {
      const other = ['demo', '--server', 'http://127.0.0.1:1']
      const run = runInTerminal(server.home, other, { env: { TMPDIR: folder } })
      await run.waitFor(/\$ otpd app create/)
      expect(readdirSync(folder)).not.toEqual([])
      if (signal !== null) run.kill(signal)
      expect([signal, await run.waitForExit(), readdirSync(folder)]).toEqual([signal, code, []])
    }
    // A disk that takes no byte.
    const noSpace = `trap '' XFSZ; ulimit -f 0; exec ${binaryPath} demo`
    const failed = await runToEnd(['sh', '-c', noSpace], { env: { HOME: server.home, TMPDIR: folder } })
    const refused = expect.stringMatching(/^Error: \S+ cannot be written to/m)
    expect([failed.exitCode, failed.stderr, readdirSync(folder)]).toEqual([9, refused, []])
  }, 60_000)

  test('otpd console opens on a terminal, and fails without one', async () => {
    const run = onTerminal('console')
    await run.waitFor(/Overview/)
    run.type('q')
    expect(await run.waitForExit()).toBe(0)
    expect(await server.otpd(['console'])).toMatchObject({ exitCode: 2, stdout: '' })
  })
})
