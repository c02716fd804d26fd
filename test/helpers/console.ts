import { binaryPath, startServer, type ServerOptions } from './binary.ts'
import { openScreen, type Size } from './screen.ts'

export const email = 'ada@example.com'
const password = 'correct horse battery'

export type ConsoleHost = Awaited<ReturnType<typeof startConsoleHost>>

/** A server with one account, which is logged in, and the consoles that it opens. */
export async function startConsoleHost(options: ServerOptions = {}) {
  const server = await startServer(options)
  const { home, dataDir, otpd } = server
  const opened: ReturnType<typeof openScreen>[] = []

  async function must(args: string[], input?: string) {
    const ran = await otpd(args, input === undefined ? {} : { input })
    if (ran.exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${ran.stderr}`)
    return ran.stdout
  }
  const account = ['--email', email, '--password-stdin']
  await must(['admin', 'create', ...account, '--name', 'Ada', '--data-dir', dataDir], password)
  await must(['login', ...account], password)

  return {
    server,
    /** A command as the same person; its output, and a failure of the test where it fails. */
    otpd: must,
    /** The same as the API answers it. */
    async json<T>(args: string[]): Promise<T> {
      const { data }: { data: T } = JSON.parse(await must([...args, '--json']))
      return data
    },
    /** The console in a terminal of its own, from its first frame on. */
    async open(
      args: string[] = [],
      size: Size = { columns: 80, rows: 24 },
      env: Record<string, string> = {},
    ) {
      const terminal = openScreen(
        [binaryPath, 'console', ...args],
        { PATH: process.env.PATH ?? '', HOME: home, OTPD_SERVER: server.url, ...env },
        size,
      )
      opened.push(terminal)
      await terminal.seen('1 Overview')
      return terminal
    },
    async stop() {
      for (const terminal of opened) await terminal.close()
      await server.stop()
    },
  }
}
