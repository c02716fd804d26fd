import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runCommand, testEnvironment, type RunOptions, type RunResult } from './run-command.ts'

/** Path of the compiled binary: `OTPD_TEST_BINARY`, or `dist/otpd`. */
export const binaryPath = resolve(process.env['OTPD_TEST_BINARY'] ?? join(import.meta.dir, '../../dist/otpd'))

export type ServerOptions = {
  /** Arguments after `serve`. */
  args?: string[]
  /** Another executable than `dist/otpd`. */
  binary?: string
  env?: Record<string, string>
  /** Data directory that outlives the server. By default a new one, removed by `stop`. Null: none is named. */
  dataDir?: string | null | undefined
  /** Home directory that outlives the server. By default a new, empty one, removed by `stop`. */
  home?: string
}

export type RunningServer = Awaited<ReturnType<typeof startServer>>

/** Runs the binary until it exits, in the environment of `testEnvironment`. */
export async function runBinary(
  home: string,
  args: string[],
  { env = {}, input, cwd }: RunOptions = {},
): Promise<RunResult> {
  assertBinaryExists()
  return await runToEnd([binaryPath, ...args], { env: testEnvironment(home, env), cwd: cwd ?? home, input })
}

/** Runs a program until it exits, with the text on standard input. */
export async function runToEnd(
  command: string[],
  { input, ...options }: { env?: Record<string, string>; cwd?: string; input?: string | undefined },
): Promise<RunResult> {
  const child = Bun.spawn(command, {
    ...options,
    stdin: new Blob([input ?? '']),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  return { exitCode, stdout, stderr }
}

/**
 * Starts `otpd serve` on a free port and waits until it is ready. `stop` also removes the directories created here.
 *
 * @throws Error with the server's output if it exits before it is ready
 */
export async function startServer(options: ServerOptions = {}) {
  assertBinaryExists()
  const home = options.home ?? mkdtempSync(join(tmpdir(), 'otpd-home-'))
  const dataDir = options.dataDir ?? join(home, 'data')
  const child = Bun.spawn([options.binary ?? binaryPath, 'serve', ...(options.args ?? [])], {
    env: testEnvironment(home, {
      ...(options.dataDir !== null && { OTPD_DATA_DIR: dataDir }),
      OTPD_LISTEN: '127.0.0.1:0',
      OTPD_LOG_FORMAT: 'json',
      ...options.env,
    }),
    cwd: home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const errors = collectOutput(child.stderr)
  const output = collectOutput(child.stdout)
  const ready = await Promise.race([output.firstLine, child.exited.then(() => null)])
  const url = ready === null ? null : readyUrl(ready)
  if (url === null) {
    child.kill()
    await child.exited
    throw new Error(
      `otpd serve exited before it was ready (${child.exitCode}): ${output.text()}${errors.text()}`,
    )
  }

  return {
    url,
    home,
    dataDir,
    pid: child.pid,
    exited: child.exited,
    /** Returns everything the server has printed so far. */
    log: () => output.text() + errors.text(),
    /** Resolves once the server has printed the text that many times. */
    waitForLog: (text: string, times = 1) =>
      Promise.race([output.waitFor(text, times), errors.waitFor(text, times)]),
    /** Resolves once a readiness probe succeeds. One that takes longer than a second, as on a busy machine, does not. */
    async waitUntilReady() {
      while ((await fetch(`${url}/v1/health/ready`)).status !== 200) await Bun.sleep(20)
    },
    /** Stops reading stderr, as a supervisor that hangs would. */
    stopReadingStderr: errors.close,
    /** Reads the setup token, which creates the first account, from the data directory. */
    setupToken: () => readFileSync(join(dataDir, 'setup-token'), 'utf8').trim(),
    /** Runs a command in the server's home, against this server. */
    otpd: (args: string[], runOptions: RunOptions = {}) =>
      runCommand(home, args, { ...runOptions, env: { OTPD_SERVER: url, ...runOptions.env } }),
    /** Stops the server and returns its exit code. */
    async stop(signal: NodeJS.Signals = 'SIGTERM') {
      child.kill(signal)
      const exitCode = await child.exited
      if (options.home === undefined) rmSync(home, { recursive: true, force: true })
      return exitCode
    },
  }
}

function assertBinaryExists() {
  if (!existsSync(binaryPath)) throw new Error(`There is no ${binaryPath}. Build it first: npm run build`)
}

function readyUrl(line: string) {
  const entry: unknown = line.startsWith('{') ? JSON.parse(line) : null
  const isReady = typeof entry === 'object' && entry !== null && 'msg' in entry && entry.msg === 'ready'
  return isReady && 'url' in entry && typeof entry.url === 'string' ? entry.url : null
}

/** Collects a stream until it ends, so that the process never blocks on a full pipe. */
export function collectOutput(stream: ReadableStream<Uint8Array>) {
  let text = ''
  let waiters: { isMatched: () => boolean; resolve: () => void }[] = []
  const decoder = new TextDecoder()
  const reader = stream.getReader()

  const waitUntil = (isMatched: () => boolean) =>
    new Promise<void>((resolve) => {
      if (isMatched()) resolve()
      else waiters.push({ isMatched, resolve })
    })

  void (async () => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      for (const waiter of waiters) if (waiter.isMatched()) waiter.resolve()
      waiters = waiters.filter((waiter) => !waiter.isMatched())
    }
  })()

  return {
    firstLine: waitUntil(() => text.includes('\n')).then(() => text.slice(0, text.indexOf('\n'))),
    waitFor: (expected: string, times = 1) => waitUntil(() => text.split(expected).length > times),
    text: () => text,
    close: () => reader.cancel(),
  }
}
