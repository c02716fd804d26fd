import { binaryPath } from './binary.ts'
import { testEnvironment } from './run-command.ts'

type TerminalOptions = {
  env?: Record<string, string>
  columns?: number
  rows?: number
  /** Runs this `sh` script instead, with the binary as `$0` and its arguments as `$@`, to redirect streams. */
  shell?: string
}

/**
 * Runs `dist/otpd` with a terminal as stdin, stdout and stderr, in the environment of `testEnvironment`. `text` has no
 * colours and no cursor movements.
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
    env: testEnvironment(home, { TERM: 'xterm-256color', ...env }),
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
  // Output may arrive after the program has ended.
  const exited = closed.promise.then(() => child.exited)

  return {
    text,
    /** Returns the output with its escape sequences. */
    raw: () => raw,
    /** Resolves once the output matches. Rejects if the program ends first. */
    waitFor: (pattern: RegExp) =>
      new Promise<RegExpExecArray>((resolve, reject) => {
        const match = pattern.exec(text())
        if (match) return resolve(match)
        waiters.push({ pattern, resolve })
        void exited.then(() => reject(new Error(`The program ended without ${pattern}:\n${text()}`)))
      }),
    type: (keys: string) => void child.terminal?.write(keys),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** Resolves with the exit code once all output has been read. */
    async waitForExit() {
      const exitCode = await exited
      child.terminal?.close()
      return exitCode
    },
  }
}
