import { binaryPath, startServer, type ServerOptions } from './binary.ts'
import { testEnvironment } from './run-command.ts'
import { openScreen, type Size } from './screen.ts'

const email = 'ada@example.com'
const password = 'correct horse battery'

export type ConsoleHost = Awaited<ReturnType<typeof startConsoleHost>>

/** Starts a server with one account, logs in, and opens consoles for it. */
export async function startConsoleHost(options: ServerOptions = {}) {
  const server = await startServer(options)
  const { home, dataDir, otpd } = server
  const terminals: ReturnType<typeof openScreen>[] = []

  async function runOrThrow(args: string[], input?: string) {
    const result = await otpd(args, input === undefined ? {} : { input })
    if (result.exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${result.stderr}`)
    return result.stdout
  }
  const account = ['--email', email, '--password-stdin']
  await runOrThrow(['admin', 'create', ...account, '--name', 'Ada', '--data-dir', dataDir], password)
  await runOrThrow(['login', ...account], password)

  return {
    server,
    /** Runs a command as the same developer and returns its output. @throws if it fails */
    otpd: runOrThrow,
    /** Runs a command with --json and returns the data. */
    async json<T>(args: string[]): Promise<T> {
      const { data }: { data: T } = JSON.parse(await runOrThrow([...args, '--json']))
      return data
    },
    /** Opens the console in a terminal of its own; resolves after its first frame. */
    async open(
      args: string[] = [],
      size: Size = { columns: 80, rows: 24 },
      env: Record<string, string> = {},
    ) {
      const terminal = openScreen(
        [binaryPath, 'console', ...args],
        testEnvironment(home, { OTPD_SERVER: server.url, ...env }),
        size,
      )
      terminals.push(terminal)
      await terminal.waitForText('1 Overview')
      return terminal
    },
    async stop() {
      for (const terminal of terminals) await terminal.close()
      await server.stop()
    },
  }
}
