import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runToEnd } from '../helpers/binary.ts'
import type { RunResult } from '../helpers/run-command.ts'

/**
 * Settings that the scenario and the test share. Retention is off, so that no date of a test run deletes anything. The
 * public URL is constant, because it is the issuer of ID tokens. Test data, not real secrets.
 */
export const masterKey = '8f1d0c6e5b7a49382716f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0'
export const publicUrl = 'https://otp.example.com'
export const gatewaySecret = 'whsec_Z2F0ZXdheSBzZWNyZXQgb2YgdGhlIHVwZ3JhZGUgdGVzdHMh'

/** Lets webhooks reach receivers on this machine. */
export const allowWebhooks = (hostname: string) => ({ OTPD_WEBHOOK_ALLOW: `${hostname}/32` })

const configText = (gatewayUrl: string) => `[plans.free]
projects = 10
applications = 5
sendPerMinute = 5
verifyPerMinute = 10

[plans.team]
projects = 20
applications = 20
sendPerMinute = 600
verifyPerMinute = 600

[[providers]]
name = "gateway"
kind = "http"
url = "${gatewayUrl}"
secretEnv = "GATEWAY_SECRET"

[[routes]]
channel = "sms"
prefixes = ["+44"]
providers = ["gateway"]

[[routes]]
channel = "sms"
providers = ["inbox"]

[limits]
phoneCheckBudget = 10

[compat]
enable = ["twilio-verify"]

[retention]
phoneDays = 0
logDays = 0
requestDays = 0
auditDays = 0
`

export type InstanceOptions = {
  binary: string
  /** Holds `data`, which outlives the instance, and the configuration. */
  folder: string
  gatewayUrl: string
  /** Undefined removes a variable. */
  env?: Record<string, string | undefined>
}

export type Instance = Awaited<ReturnType<typeof startInstance>>

/** Starts `otpd serve` on the folder's `data`. @throws Error with its output, if it does not become ready */
export async function startInstance(options: InstanceOptions) {
  const { binary, env } = prepare(options)
  const child = Bun.spawn([binary, 'serve'], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const errors = child.stderr.text()
  const reader = child.stdout.getReader()
  const decoder = new TextDecoder()
  let log = ''
  const readMore = async () => {
    const { done, value } = await reader.read()
    if (!done) log += decoder.decode(value, { stream: true })
    return !done
  }
  const readyLine = () => log.split('\n').find((line) => line.includes('"msg":"ready"'))
  while (!log.endsWith('\n') || readyLine() === undefined) {
    if (!(await readMore())) throw new Error(`otpd did not become ready: ${log}${await errors}`)
  }
  const drained = (async () => {
    while (await readMore());
  })()
  const { url } = JSON.parse(readyLine() ?? '{}') as { url: string }

  return {
    url,
    log: () => log,
    run: (args: string[], input?: string) => runCommand(options, args, input),
    /** Ends the process as a power cut would, for its files. */
    async kill(): Promise<void> {
      child.kill('SIGKILL')
      await child.exited
    },

    /** Stops the server, which moves the write-ahead log into the database. */
    async stop(): Promise<number> {
      child.kill('SIGTERM')
      await drained
      return child.exited
    },
  }
}

/** Runs a command of the binary on the same data and configuration. */
export async function runCommand(options: InstanceOptions, args: string[], input = ''): Promise<RunResult> {
  const { binary, env } = prepare(options)
  return await runToEnd([binary, ...args], { env, input })
}

function prepare({ binary, folder, gatewayUrl, env }: InstanceOptions) {
  const home = join(folder, 'home')
  const config = join(folder, 'otpd.toml')
  mkdirSync(home, { recursive: true })
  writeFileSync(config, configText(gatewayUrl), { mode: 0o600 })
  return {
    binary,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      GATEWAY_SECRET: gatewaySecret,
      OTPD_CONFIG: config,
      OTPD_DATA_DIR: join(folder, 'data'),
      OTPD_LISTEN: '127.0.0.1:0',
      OTPD_LOG_FORMAT: 'json',
      OTPD_MASTER_KEY: masterKey,
      OTPD_PUBLIC_URL: publicUrl,
      ...env,
    },
  }
}
