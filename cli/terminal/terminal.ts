import { homedir } from 'node:os'
import { drawProgress } from './draw-progress.ts'
import type { Io } from './io.ts'

/** Wraps the real process. In Bun, `isTTY` of a piped stream is undefined, not false. */
export function processIo(): Io {
  return {
    env: Bun.env,
    workingDirectory: process.cwd(),
    homeDirectory: Bun.env.HOME ?? homedir(),
    stdinIsTerminal: Boolean(process.stdin.isTTY),
    stdoutIsTerminal: Boolean(process.stdout.isTTY),
    stderrIsTerminal: Boolean(process.stderr.isTTY),
    columns: () => process.stdout.columns || null,
    writeOut: (text) => void process.stdout.write(text),
    writeError: (text) => void process.stderr.write(text),
    readInput: () => Bun.stdin.text(),
    askLine,
    openPage: (url) => openBrowser(url, Bun.env),
    drawProgress,
    now: Date.now,
    sleep: (durationMs) => Bun.sleep(durationMs),
    onInterrupt,
  }
}

/**
 * Opens a page in the person's browser: `$BROWSER`, or the desktop's. False if there is none: on a machine without a
 * desktop `xdg-open` would start a browser for text inside our terminal.
 */
export function openBrowser(url: string, env: Io['env'], platform: NodeJS.Platform = process.platform) {
  const hasDesktop = platform === 'darwin' || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
  const desktopOpener = platform === 'darwin' ? 'open' : 'xdg-open'
  const opener = env.BROWSER || (hasDesktop ? desktopOpener : null)
  if (opener === null) return false
  try {
    // In a group of its own, so that Ctrl+C here does not close what the person reads there.
    Bun.spawn([opener, url], {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
      detached: true,
    }).unref()
    return true
  } catch {
    return false
  }
}

function onInterrupt(handler: (signal: 'SIGINT' | 'SIGTERM') => void) {
  const onInt = () => handler('SIGINT')
  const onTerm = () => handler('SIGTERM')
  process.on('SIGINT', onInt)
  process.on('SIGTERM', onTerm)
  return () => {
    process.off('SIGINT', onInt)
    process.off('SIGTERM', onTerm)
  }
}

type LineInput = { text: string; outcome: 'typing' | 'entered' | 'canceled'; unread: string }

/** Applies keys to the line typed so far. Exported for its tests: everything else about a terminal is side effects. */
export function applyKeys(previous: string, keys: string): LineInput {
  let text = previous
  // Arrow and function keys arrive as escape sequences, which are dropped.
  // oxlint-disable-next-line no-control-regex -- they begin with one
  const characters = [...keys.replaceAll(/\u001b(?:\[[0-9;?]*[ -/]*[@-~]|O.|)/g, '')]
  for (const [index, key] of characters.entries()) {
    const unread = characters.slice(index + 1).join('')
    if (key === '\r' || key === '\n') return { text, outcome: 'entered', unread }
    if (key === '\u0003' || (key === '\u0004' && text === ''))
      return { text: '', outcome: 'canceled', unread }
    if (key === '\u007f' || key === '\b') text = [...text].slice(0, -1).join('')
    else if (key === '\u0015') text = ''
    else if (key === '\u0017') text = text.replace(/\S*\s*$/, '')
    else if (key >= ' ') text += key
  }
  return { text, outcome: 'typing', unread: '' }
}

/** Keys that were typed before the next prompt. */
let typedAhead = ''

/**
 * Reads a line in raw mode with the prompt on stderr, so that a redirected stdout stays clean. Not readline: it keeps
 * hold of stdin, and it cannot hide input.
 */
function askLine(question: string, { secret }: { secret: boolean }): Promise<string | null> {
  const { stdin, stderr } = process
  return new Promise((resolve) => {
    let text = ''
    const onData = (chunk: string) => {
      const input = applyKeys(text, chunk)
      if (!secret) stderr.write('\b \b'.repeat(Bun.stringWidth(text)) + input.text)
      text = input.text
      typedAhead = input.unread
      if (input.outcome === 'typing') return
      stdin.off('data', onData)
      stdin.setRawMode(false)
      stdin.pause()
      stderr.write('\n')
      resolve(input.outcome === 'entered' ? text : null)
    }
    // Before the prompt is shown: otherwise a fast answer, even a password, would be echoed.
    stdin.setRawMode(true)
    stderr.write(question)
    stdin.setEncoding('utf8')
    stdin.on('data', onData)
    stdin.resume()
    if (typedAhead !== '') onData(typedAhead)
  })
}
