import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startExternalProgram } from './external-program.ts'

/** A message of the browser that answers no call. */
type BrowserEvent = { method: string; params: unknown }

export type Browser = {
  /** Calls a method of the DevTools protocol. @param sessionId of the page; without it, the browser is called */
  call(method: string, params?: object, sessionId?: string): Promise<unknown>
  /** Passes the events of a page to the function until `null` takes its place. */
  listen(sessionId: string, listener: ((event: BrowserEvent) => void) | null): void
  /** Returns false once the browser has ended, as when a test ran out of time. */
  isRunning(): boolean
}

type Message = {
  id?: number
  sessionId?: string
  method?: string
  params?: unknown
  result?: unknown
  error?: { message: string }
}

/** Starts a headless Chromium and connects to it. It ends with this process. */
export async function startBrowser(chromiumPath: string): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'otpd-chromium-'))
  const command = [
    chromiumPath,
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-sync',
    '--disable-background-networking',
    '--disable-component-update',
    '--remote-debugging-port=0',
    `--user-data-dir=${profile}`,
    '--window-size=1280,1000',
    // A host of this machine that is no secure context over plain HTTP, as loopback addresses are.
    '--host-resolver-rules=MAP otp.test 127.0.0.1',
    'about:blank',
  ]
  const program = await startExternalProgram(command, '/devtools/browser/')
  removeAtEnd(profile)
  const socket = new WebSocket(/DevTools listening on (ws:\S+)/.exec(program.errors())?.[1] ?? '')
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })

  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  const listeners = new Map<string, (event: BrowserEvent) => void>()
  let lastMessageId = 0
  socket.addEventListener('message', ({ data }) => {
    const { id, sessionId = '', method = '', params, result, error }: Message = JSON.parse(String(data))
    if (id === undefined) return listeners.get(sessionId)?.({ method, params })
    const deferred = pending.get(id)
    pending.delete(id)
    if (error) deferred?.reject(new Error(error.message))
    else deferred?.resolve(result)
  })

  let isRunning = true
  socket.addEventListener('close', () => {
    isRunning = false
    for (const { reject } of pending.values()) reject(new Error('Chromium ended.'))
  })

  return {
    isRunning: () => isRunning,
    call(method, params = {}, sessionId) {
      const deferred = Promise.withResolvers<unknown>()
      pending.set(++lastMessageId, deferred)
      socket.send(JSON.stringify({ id: lastMessageId, method, params, sessionId }))
      return deferred.promise
    },
    listen(sessionId, listener) {
      if (listener === null) listeners.delete(sessionId)
      else listeners.set(sessionId, listener)
    },
  }
}

/** Removes a folder once this process has ended, however it ends: its end closes the standard input of the shell. */
function removeAtEnd(folder: string): void {
  // More than once: a browser that is being killed still writes.
  const script = 'read -r line; for second in 1 2 3; do sleep 1; rm -rf "$0"; done'
  const shell = Bun.spawn(['sh', '-c', script, folder], {
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'ignore',
    detached: true,
  })
  shell.unref()
  shells.push(shell)
}

/** Keeps the standard inputs open, which end with their objects. */
const shells: unknown[] = []

/** Reads a nested property of a message from the browser. */
export const readPath = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>(
    (current, name) =>
      typeof current === 'object' && current !== null && name in current
        ? Object.entries(current).find(([key]) => key === name)?.[1]
        : undefined,
    value,
  )
