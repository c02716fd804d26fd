import { render } from 'ink'
import { PassThrough } from 'node:stream'
import { StrictMode, type ReactNode } from 'react'
import { ConsoleContext, type Console } from '../../cli/console/console-context.ts'
import { createConsole } from '../../cli/console/create-console.ts'
import { createContext } from '../../cli/context.ts'
import type { ExitCode } from '../../cli/terminal/errors.ts'
import { createOutput } from '../../cli/terminal/output.ts'
import { processIo } from '../../cli/terminal/terminal.ts'

type Options = { serverUrl?: string; columns?: number; rows?: number; now?: () => number }

/**
 * Renders a part of the console in this process, without a terminal, under React's StrictMode: every component is
 * rendered twice and every effect runs twice. A component that writes to the console's state while it renders throws.
 */
export function renderConsole(
  element: ReactNode,
  { serverUrl = 'http://127.0.0.1:1', columns = 80, rows = 24, now = Date.now }: Options = {},
) {
  const io = {
    ...processIo(),
    env: { OTPD_TOKEN: 'token', OTPD_SERVER: serverUrl, LC_ALL: 'C.UTF-8', NO_COLOR: '1' },
    writeOut: () => {},
    now,
  }
  const context = createContext(io, {}, createOutput(io, {}))
  const exit = Promise.withResolvers<ExitCode>()
  const { console, stop } = createConsole({
    context,
    connection: context.connect(),
    developer: { id: 'dev_1', email: 'ada@example.com' },
    options: { isReadOnly: false, isAscii: false },
    exit,
  })
  refuseWritesInRender(console)

  let frame = ''
  let listeners: (() => void)[] = []
  const stdout = Object.assign(new PassThrough(), { columns, rows })
  stdout.on('data', (chunk: Buffer) => {
    frame = chunk.toString()
    for (const notify of listeners) notify()
  })
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: () => stdin,
    ref: () => stdin,
    unref: () => stdin,
  })
  const ink = render(
    <StrictMode>
      <ConsoleContext value={console}>{element}</ConsoleContext>
    </StrictMode>,
    // In debug mode Ink writes whole frames, and each one at once.
    { stdout, stdin, debug: true, exitOnCtrlC: false, patchConsole: false, interactive: true },
  )
  // Rejects with an error in rendering, and with a load that failed unexpectedly.
  const failed = Promise.race([ink.waitUntilExit().then(() => exit.promise), exit.promise])
  failed.catch(() => {})

  return {
    console,
    frame: () => Bun.stripANSI(frame),
    press(...keys: string[]) {
      for (const key of keys) console.keys.press(key)
    },
    /** Resolves once the text is on the screen; rejects when rendering failed. */
    async waitForText(expected: string | RegExp) {
      const shown = Promise.withResolvers<void>()
      const check = () => {
        const text = Bun.stripANSI(frame)
        if (typeof expected === 'string' ? text.includes(expected) : expected.test(text)) shown.resolve()
      }
      listeners.push(check)
      check()
      const timer = setTimeout(
        () => shown.reject(new Error(`Waited for ${String(expected)}, got:\n${Bun.stripANSI(frame)}`)),
        10_000,
      )
      try {
        await Promise.race([shown.promise, failed])
      } finally {
        clearTimeout(timer)
        listeners = listeners.filter((listener) => listener !== check)
      }
    },
    close() {
      stop()
      ink.unmount()
    },
  }
}

/** Makes each store and map of the console throw when a component writes to it while it renders. */
function refuseWritesInRender(console: Console) {
  for (const target of [...Object.values(console), console.keys.version]) {
    if (!isWritable(target)) continue
    const write = target.set
    target.set = (...args: unknown[]) => {
      if (isRendering()) throw new Error('A component wrote to the state of the console while it rendered.')
      return Reflect.apply(write, target, args)
    }
  }
}

type Writable = { set(...args: unknown[]): unknown }

const isWritable = (value: unknown): value is Writable =>
  typeof value === 'object' && value !== null && 'set' in value && typeof value.set === 'function'

/** React calls every component from `renderWithHooks`, and effects and event handlers from elsewhere. */
function isRendering() {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 200
  const { stack = '' } = new Error('for its stack')
  Error.stackTraceLimit = limit
  return stack.includes('renderWithHooks')
}
