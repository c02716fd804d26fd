import { Terminal as Emulator } from '@xterm/headless'

export type Size = { columns: number; rows: number }

/**
 * A program in a terminal: a real pseudo-terminal of the system, and an emulator that reads what the program draws.
 * Nothing here waits for a time to pass: `seen` looks again whenever something was drawn.
 */
export function openScreen(command: string[], env: Record<string, string>, { columns, rows }: Size) {
  const emulator = new Emulator({ cols: columns, rows, allowProposedApi: true })
  let written = ''
  let awaited: (() => void)[] = []
  let shown: string[] = []
  const decoder = new TextDecoder()

  function show() {
    const { active } = emulator.buffer
    shown = Array.from({ length: emulator.rows }, (_, row) =>
      (active.getLine(active.baseY + row)?.translateToString(true) ?? '').trimEnd(),
    )
    for (const look of awaited) look()
  }

  const drawn = Promise.withResolvers<void>()
  const child = Bun.spawn(command, {
    env: { TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', ...env },
    terminal: {
      cols: columns,
      rows,
      data(_, bytes) {
        written += decoder.decode(bytes, { stream: true })
        // Half a frame is no screen: a person does not see one either.
        emulator.write(bytes, () => {
          if (!emulator.modes.synchronizedOutputMode) show()
        })
      },
      // What was written before comes out of the emulator before this does.
      exit: () =>
        emulator.write('', () => {
          show()
          drawn.resolve()
        }),
    },
  })
  const exited = drawn.promise.then(() => child.exited)
  const { terminal } = child
  if (terminal === undefined) throw new Error('This system has no pseudo-terminals.')

  const flagsBefore = terminal.localFlags

  /** Resolves once it is so; fails with the screen where the program ends before, or after a minute. */
  async function until(isSo: () => boolean, what: string) {
    const changed = Promise.withResolvers<void>()
    const look = () => {
      if (isSo()) changed.resolve()
    }
    awaited.push(look)
    look()
    const ended = exited.then(() => (isSo() ? null : 'the program ended'))
    const late = Promise.withResolvers<string>()
    const timer = setTimeout(() => late.resolve('it did not come in a minute'), 60_000)
    const fault = await Promise.race([changed.promise.then(() => null), ended, late.promise])
    clearTimeout(timer)
    awaited = awaited.filter((one) => one !== look)
    if (fault !== null) throw new Error(`Waited for ${what}, but ${fault}:\n${shown.join('\n')}`)
  }

  const isThere = (wanted: string | RegExp) => {
    const text = shown.join('\n')
    return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
  }

  return {
    child,
    /** The exit code, once all that the program wrote is on the screen. */
    exited,
    /** Everything that the program wrote, with its escape sequences. */
    written: () => written,
    /** The rows as a person sees them. */
    screen: () => shown,
    text: () => shown.join('\n'),
    /** The alternate screen is shown. */
    isAlternate: () => emulator.buffer.active.type === 'alternate',
    /** Presses keys: text as it is, or the name of a key. */
    press(...keys: string[]) {
      for (const key of keys) terminal.write(named[key] ?? key)
    },
    seen: (wanted: string | RegExp) => until(() => isThere(wanted), String(wanted)),
    gone: (unwanted: string | RegExp) => until(() => !isThere(unwanted), `no ${String(unwanted)}`),
    until,
    resize(size: Size) {
      emulator.resize(size.columns, size.rows)
      show()
      terminal.resize(size.columns, size.rows)
    },
    /** Echo, line editing and their kind (termios `c_lflag`) are as the program found them. */
    isRestored: () => terminal.localFlags === flagsBefore,
    hasCursor: () => written.lastIndexOf('\u001b[?25h') >= written.lastIndexOf('\u001b[?25l'),
    async close() {
      child.kill('SIGKILL')
      await child.exited
      terminal.close()
      emulator.dispose()
    },
  }
}

export type OpenScreen = ReturnType<typeof openScreen>

const named: Partial<Record<string, string>> = {
  enter: '\r',
  esc: '\u001b',
  tab: '\t',
  'shift-tab': '\u001b[Z',
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  pageup: '\u001b[5~',
  pagedown: '\u001b[6~',
  home: '\u001b[H',
  end: '\u001b[F',
  backspace: '\u007f',
  'ctrl-c': '\u0003',
  'ctrl-u': '\u0015',
  'ctrl-z': '\u001a',
}

/** What a program copied last, to the clipboard of the terminal (OSC 52). */
export function copiedIn(written: string) {
  // oxlint-disable-next-line no-control-regex -- the sequence begins and ends with one
  const copies = [...written.matchAll(/\u001b\]52;c;([^\u0007]*)\u0007/g)]
  return Buffer.from(copies.at(-1)?.[1] ?? '', 'base64').toString()
}
