import { Terminal as Emulator } from '@xterm/headless'

export type Size = { columns: number; rows: number }

/**
 * Runs a program in a real pseudo-terminal, with an emulator that interprets what it draws. Waiting is event-driven: each
 * condition is checked again after each frame.
 */
export function openScreen(command: string[], env: Record<string, string>, { columns, rows }: Size) {
  const emulator = new Emulator({ cols: columns, rows, allowProposedApi: true })
  let written = ''
  let listeners: (() => void)[] = []
  let screenRows: string[] = []
  const decoder = new TextDecoder()

  function refresh() {
    const { active } = emulator.buffer
    screenRows = Array.from({ length: emulator.rows }, (_, row) =>
      (active.getLine(active.baseY + row)?.translateToString(true) ?? '').trimEnd(),
    )
    for (const notify of listeners) notify()
  }

  const finished = Promise.withResolvers<void>()
  const child = Bun.spawn(command, {
    env: { TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', ...env },
    terminal: {
      cols: columns,
      rows,
      data(_, bytes) {
        written += decoder.decode(bytes, { stream: true })
        // Ignore half-drawn frames, which a terminal does not show either.
        emulator.write(bytes, () => {
          if (!emulator.modes.synchronizedOutputMode) refresh()
        })
      },
      // Queued after all earlier output in the emulator.
      exit: () =>
        emulator.write('', () => {
          refresh()
          finished.resolve()
        }),
    },
  })
  const exited = finished.promise.then(() => child.exited)
  const { terminal } = child
  if (terminal === undefined) throw new Error('This system has no pseudo-terminals.')

  const flagsBefore = terminal.localFlags

  /** Resolves once the condition is true. Rejects, with the screen, if the program ends first, or after a minute. */
  async function waitUntil(condition: () => boolean, description: string) {
    const changed = Promise.withResolvers<void>()
    const check = () => {
      if (condition()) changed.resolve()
    }
    listeners.push(check)
    check()
    const ended = exited.then(() => (condition() ? null : 'the program ended'))
    const timedOut = Promise.withResolvers<string>()
    const timer = setTimeout(() => timedOut.resolve('it did not happen within a minute'), 60_000)
    const failure = await Promise.race([changed.promise.then(() => null), ended, timedOut.promise])
    clearTimeout(timer)
    listeners = listeners.filter((listener) => listener !== check)
    if (failure !== null)
      throw new Error(`Waited for ${description}, but ${failure}:\n${screenRows.join('\n')}`)
  }

  const isOnScreen = (expected: string | RegExp) => {
    const text = screenRows.join('\n')
    return typeof expected === 'string' ? text.includes(expected) : expected.test(text)
  }

  return {
    child,
    /** Resolves with the exit code once all output is on the screen. */
    exited,
    /** Returns all output, with its escape sequences. */
    written: () => written,
    /** Returns the visible rows. */
    screen: () => screenRows,
    text: () => screenRows.join('\n'),
    /** Returns the emulator's buffer, with the style of every cell. */
    buffer: () => emulator.buffer.active,
    /** Whether the alternate screen is shown. */
    isAlternate: () => emulator.buffer.active.type === 'alternate',
    /** Presses keys: each is the name of a key, or text to type. */
    press(...keys: string[]) {
      for (const key of keys) terminal.write(namedKeys[key] ?? key)
    },
    waitForText: (expected: string | RegExp) => waitUntil(() => isOnScreen(expected), String(expected)),
    waitForTextGone: (unwanted: string | RegExp) =>
      waitUntil(() => !isOnScreen(unwanted), `no ${String(unwanted)}`),
    waitUntil,
    resize(size: Size) {
      emulator.resize(size.columns, size.rows)
      refresh()
      terminal.resize(size.columns, size.rows)
    },
    /** Whether echo, line editing and the other local modes (termios `c_lflag`) are as before the program. */
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

const namedKeys: Partial<Record<string, string>> = {
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

/** Returns the last text that a program copied to the terminal's clipboard (OSC 52). */
export function lastCopiedText(written: string) {
  // oxlint-disable-next-line no-control-regex -- the sequence begins and ends with one
  const copies = [...written.matchAll(/\u001b\]52;c;([^\u0007]*)\u0007/g)]
  return Buffer.from(copies.at(-1)?.[1] ?? '', 'base64').toString()
}
