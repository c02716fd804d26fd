import { binaryPath } from './binary.ts'

export type TerminalOptions = {
  env?: Record<string, string>
  columns?: number
  rows?: number
  /** A line of sh that gets the binary as `$0` and its arguments as `$@`, to redirect some of its streams. */
  shell?: string
}

export type TerminalRun = ReturnType<typeof runInTerminal>

/**
 * Runs `dist/otpd` with a terminal as its input, output and error output, and nothing of this process's environment but
 * PATH. Colours and cursor movements are left out of what is seen.
 */
export function runInTerminal(home: string, args: string[], options: TerminalOptions = {}) {
  const { env = {}, columns = 80, rows = 24, shell } = options
  const decoder = new TextDecoder()
  let raw = ''
  let waiters: { pattern: RegExp; resolve: (match: RegExpExecArray) => void }[] = []
  const text = () => Bun.stripANSI(raw).replaceAll('\r', '')

  const command = shell === undefined ? [binaryPath] : ['sh', '-c', shell, binaryPath]
  const closed = Promise.withResolvers<void>()

  const child = Bun.spawn([...command, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: home, TERM: 'xterm-256color', ...env },
    cwd: home,
    terminal: {
      cols: columns,
      rows,
      data(_terminal, bytes) {
        raw += decoder.decode(bytes, { stream: true })
        waiters = waiters.filter(({ pattern, resolve }) => {
          const match = pattern.exec(text())
          if (match) resolve(match)
          return match === null
        })
      },
      exit: () => closed.resolve(),
    },
  })
  // What a program printed may be read after it has ended.
  const exited = closed.promise.then(() => child.exited)

  return {
    text,
    /** As it came, for what is about colours. */
    raw: () => raw,
    /** Resolves once this stands on the terminal. */
    waitFor: (pattern: RegExp) =>
      new Promise<RegExpExecArray>((resolve, reject) => {
        const match = pattern.exec(text())
        if (match) return resolve(match)
        waiters.push({ pattern, resolve })
        void exited.then(() => reject(new Error(`It ended without ${pattern}:\n${text()}`)))
      }),
    type: (keys: string) => void child.terminal?.write(keys),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** The exit code, once everything that was printed has been read. */
    async waitForExit() {
      const exitCode = await exited
      child.terminal?.close()
      return exitCode
    },
  }
}
