import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { signWebhook } from '../../cli/webhooks/signature.ts'
import { authToken, startGateway, twilioAt } from '../delivery/gateway.ts'
import { binaryPath, startServer, type RunningServer } from '../helpers/binary.ts'
import { commandCases, type Case, type Scene } from '../helpers/command-cases.ts'
import { runApart } from '../helpers/run-apart.ts'
import { runInTerminal } from '../helpers/terminal.ts'
import { startRelay, type Relay } from '../helpers/relay.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

// Every command of the compiled binary, in a pipe, with --json, and on a terminal of 80 columns: what is on standard
// output, what on standard error, and the exit code. A command without a case is a failure.

const leaves = (command: Command, path: string[] = []): string[] =>
  command.commands.length === 0
    ? [path.join(' ')]
    : command.commands.flatMap((sub) => leaves(sub, [...path, sub.name()]))

/** Those that take the terminal for themselves have tests below. */
const apart = ['serve', 'console']

test('there is a case for every command', () => {
  const program = createProgram(processIo(), async () => {})
  const tested = [...commandCases.map(([path]) => path), ...apart]
  expect(leaves(program).toSorted()).toEqual(tested.toSorted())
})

describe.each(['pipe', 'json', 'terminal'] as const)('%s:', (mode) => {
  let server: RunningServer
  let relay: Relay
  let receiver: WebhookReceiver
  const gateway = startGateway()
  let scene: Scene

  const run = (path: string, { args, input, isEndless }: Case) => {
    const words = [...path.split(' '), ...args, ...(mode === 'json' ? ['--json'] : [])]
    const env = {
      OTPD_SERVER: relay.url,
      OTPD_DATA_DIR: server.dataDir,
      OTPD_CONFIG: join(server.home, 'otpd.toml'),
      ...(path === 'restore' && { OTPD_MASTER_KEY_FILE: join(server.dataDir, 'master.key') }),
    }
    const until = isEndless ? relay.streamed() : undefined
    return runApart(server.home, words, { env, input, until, isTerminal: mode === 'terminal' })
  }

  beforeAll(async () => {
    receiver = await startReceiver()
    server = await startServer({ env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', OTPD_SEND_PER_MINUTE: '0' } })
    relay = startRelay(server.url)
    writeFileSync(join(server.home, 'twilio'), authToken)
    const { values } = twilioAt('main', gateway.url)
    const settings = Object.entries({ ...values, name: 'main', kind: 'twilio', authTokenFile: 'twilio' })
    const lines = settings.filter(([key]) => key !== 'authToken').map(([key, value]) => `${key} = "${value}"`)
    writeFileSync(join(server.home, 'otpd.toml'), ['[[providers]]', ...lines].join('\n'))
    scene = createScene()
  })

  afterAll(async () => {
    await server.stop()
    await relay.stop()
    await gateway.stop()
    await receiver.stop()
  })

  function createScene(): Scene {
    const otpd = async (...args: string[]) => {
      const ran = await server.otpd([...args, '--json'], { env: { OTPD_SERVER: relay.url } })
      if (ran.exitCode !== 0) throw new Error(ran.stderr)
      return JSON.parse(ran.stdout).data
    }
    const send = async (phone: string): Promise<string> =>
      (await otpd('otp', 'send', phone, '--env-file', 'web.env')).requestId
    return {
      project: `p-${mode}`,
      requestId: '',
      webhookId: '',
      deliveryId: '',
      receiverUrl: receiver.url,
      send,
      async deliver(webhookId) {
        const came = receiver.hasReceived(receiver.received.length + 1)
        await send('+14155550103')
        await came
        return (await otpd('webhook', 'deliveries', webhookId))[0].id
      },
      addProject: async (name) => (await otpd('project', 'create', name)).id,
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
      // The application that codes are sent as; there is no other of this name.
      if (path === 'otp send') await run('app create', webApplication(scene))
      const wanted = await prepare(scene)
      relay.bodies.length = 0
      const ran = await run(path, wanted)
      const [id] =
        new RegExp(wanted.keeps === 'webhookId' ? 'whk_\\w{26}' : 'otp_\\w{26}').exec(ran.stdout) ?? []
      if (wanted.keeps !== undefined) scene[wanted.keeps] = id ?? ''
      if (path === 'webhook deliveries')
        scene.deliveryId = /dlv_\w{26}/.exec(ran.stdout)?.[0] ?? scene.deliveryId
      if (mode === 'json') expectJson(wanted, ran)
      else expectText(wanted, ran)
    })

  const webApplication = ({ project }: Scene): Case => ({
    args: ['web', '--project', project, '--env', 'test', '--env-file', 'web.env'],
  })

  type Ran = Awaited<ReturnType<typeof runApart>>

  function expectText({ stdout = '', stderr = '', exitCode = 0, onTerminal, isWide }: Case, ran: Ran) {
    const wanted = { stdout, stderr, exitCode, ...(mode === 'terminal' && onTerminal) }
    expect(ran).toEqual({
      exitCode: wanted.exitCode,
      stdout: wanted.stdout instanceof RegExp ? expect.stringMatching(wanted.stdout) : wanted.stdout,
      stderr: wanted.stderr instanceof RegExp ? expect.stringMatching(wanted.stderr) : wanted.stderr,
    })
    if (mode === 'pipe') expect(Bun.stripANSI(ran.stdout)).toBe(ran.stdout)
    else if (isWide !== true)
      expect(ran.stdout.split('\n').filter((line) => Bun.stringWidth(line) > 80)).toEqual([])
  }

  function expectJson({ json, exitCode = 0 }: Case, ran: Ran) {
    expect(ran.exitCode).toBe(exitCode)
    if (json === 'same') return
    const [answer, silent] = exitCode === 0 ? [ran.stdout, ran.stderr] : [ran.stderr, ran.stdout]
    expect(silent).toBe('')
    if (json === 'own' || relay.bodies.length === 0) expect(JSON.parse(answer)).toBeObject()
    else expect(relay.bodies.map((body) => `${body}\n`)).toContain(answer)
  }
})

describe('what takes the terminal for itself:', () => {
  let server: RunningServer

  beforeAll(async () => {
    server = await startServer()
    const create = ['admin', 'create', '--email', 'ada@example.com', '--password-stdin']
    await server.otpd([...create, '--data-dir', server.dataDir], { input: 'correct horse battery' })
  })

  afterAll(() => server.stop())

  const onTerminal = (...args: string[]) =>
    runInTerminal(server.home, args, { env: { OTPD_SERVER: server.url } })

  test('otpd serve tells the next command, and ends with Ctrl-C', async () => {
    const run = runInTerminal(server.home, ['serve', '--dev', '--listen', '127.0.0.1:0'])
    await run.seen(/Stop with Ctrl\+C\./)
    expect(run.text()).toMatch(/otpd login .*--setup-token st_\S+/)
    run.type('\u0003')
    expect(await run.ended()).toBe(0)
  })

  test('otpd serve tells what to type where otpd is not in the PATH, and nothing of it where it is', async () => {
    const greeting = async (path: string) => {
      const run = runInTerminal(server.home, ['serve', '--dev', '--listen', '127.0.0.1:0'], {
        env: { PATH: path },
      })
      await run.seen(/Stop with Ctrl\+C\./)
      run.type('\u0003')
      await run.ended()
      return run.text()
    }
    expect(await greeting(server.home)).toContain(`\n    alias otpd=${binaryPath}\n    otpd login `)
    const bin = join(server.home, 'bin')
    mkdirSync(bin)
    symlinkSync(binaryPath, join(bin, 'otpd'))
    expect(await greeting(bin)).not.toContain('alias')
  })

  test('otpd login asks, and shows no password', async () => {
    const run = onTerminal('login')
    await run.seen(/Email: /)
    run.type('ada@example.com\r')
    await run.seen(/Password: /)
    run.type('correct horse battery\r')
    expect(await run.ended()).toBe(0)
    expect(run.text()).toContain('✓ Logged in to')
    expect(run.text()).not.toContain('battery')
  })

  test('what cannot be undone wants its name typed', async () => {
    await server.otpd(['project', 'create', 'shop'])
    const first = onTerminal('project', 'delete', 'shop')
    await first.seen(/Type shop to confirm: /)
    first.type('ship\r')
    expect(await first.ended()).toBe(2)
    expect(first.text()).toContain('That is not shop; nothing was changed.')
    const second = onTerminal('project', 'delete', 'shop')
    await second.seen(/Type shop to confirm: /)
    second.type('\u0003')
    expect(await second.ended()).toBe(130)
    const third = onTerminal('project', 'delete', 'shop')
    await third.seen(/Type shop to confirm: /)
    third.type('shop\r')
    expect(await third.ended()).toBe(0)
  })

  test('otpd logs --tail, inbox --tail and analytics --watch go on until Ctrl-C', async () => {
    for (const args of [
      ['logs', '--tail'],
      ['inbox', '--tail'],
      ['analytics', '--watch'],
    ]) {
      const run = onTerminal(...args)
      await run.seen(/Ctrl\+C to quit/)
      run.type('\u0003')
      expect(await run.ended()).toBe(130)
    }
  })

  test('otpd console is a screen, and none without a terminal', async () => {
    const run = onTerminal('console')
    await run.seen(/Overview/)
    run.type('q')
    expect(await run.ended()).toBe(0)
    expect(await server.otpd(['console'])).toMatchObject({ exitCode: 2, stdout: '' })
  })
})
