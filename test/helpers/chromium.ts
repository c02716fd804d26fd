import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const chromiumPath =
  Bun.which('chromium') ?? Bun.which('chromium-browser') ?? Bun.which('google-chrome')
if (chromiumPath === null) process.stderr.write('Skipped: browser tests. Install Chromium to run them.\n')

export type BrowserPage = {
  /** URLs that the page has requested. */
  requests: string[]
  /** Warnings and errors of the page and the browser, violations of the content security policy included. */
  consoleErrors: string[]
  /** Evaluates an expression in the page. */
  evaluate(expression: string): Promise<unknown>
  /** Loads another address in the same profile. */
  open(url: string): Promise<void>
  /** Resolves once an expression is true. */
  waitFor(condition: string): Promise<void>
  /** Resolves once the page has an element. Works without scripts, as the next one. */
  waitForElement(selector: string): Promise<void>
  focusElement(selector: string): Promise<void>
  /** Types a text into the focused element. */
  type(text: string): Promise<void>
  /** Presses and releases a key, such as `Tab`, `Enter` or `Backspace`. */
  press(key: string): Promise<void>
  /** Takes a screenshot: a PNG, base64-encoded. */
  screenshot(): Promise<string>
  close(): Promise<void>
}

type Message = {
  id?: number
  method?: string
  params?: unknown
  result?: unknown
  error?: { message: string }
}

/**
 * Opens a page in a headless Chromium with a new profile.
 *
 * @param readyWhen an expression that is true once the page has loaded its content
 * @param view.width of the window in CSS pixels
 * @param view.hasScripts false turns JavaScript off in the page, and with it `evaluate` and `readyWhen`
 * @param view.languages `Accept-Language` of the browser
 * @param view.before script that runs in each document before those of the page, for what no headless browser has
 */
export async function openPage(
  url: string,
  readyWhen: string,
  view: { width: number; isDark: boolean; hasScripts?: boolean; languages?: string; before?: string } = {
    width: 1280,
    isDark: false,
  },
): Promise<BrowserPage> {
  if (chromiumPath === null) throw new Error('Chromium is not installed.')
  const profile = mkdtempSync(join(tmpdir(), 'otpd-chromium-'))
  const browser = Bun.spawn(
    [
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
    ],
    { stderr: 'pipe', stdout: 'ignore' },
  )
  const socket = new WebSocket(await debuggerUrl(browser.stderr))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })

  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  const requests: string[] = []
  const consoleErrors: string[] = []
  let lastMessageId = 0
  let sessionId: string | undefined

  socket.addEventListener('message', ({ data }) => {
    const message: Message = JSON.parse(String(data))
    if (message.id !== undefined) {
      const deferred = pending.get(message.id)
      if (message.error) deferred?.reject(new Error(message.error.message))
      else deferred?.resolve(message.result)
      return
    }
    const text = JSON.stringify(message.params)
    if (message.method === 'Network.requestWillBeSent')
      requests.push(String(readPath(message.params, 'request', 'url')))
    if (message.method === 'Network.loadingFailed' || message.method === 'Runtime.exceptionThrown')
      consoleErrors.push(text)
    if (message.method === 'Log.entryAdded') consoleErrors.push(text)
    const isPlain = ['log', 'info', 'debug'].includes(String(readPath(message.params, 'type')))
    if (message.method === 'Runtime.consoleAPICalled' && !isPlain) consoleErrors.push(text)
  })

  function call(method: string, params: object = {}): Promise<unknown> {
    const deferred = Promise.withResolvers<unknown>()
    pending.set(++lastMessageId, deferred)
    socket.send(JSON.stringify({ id: lastMessageId, method, params, sessionId }))
    return deferred.promise
  }

  const evaluate = async (expression: string) =>
    readPath(
      await call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }),
      'result',
      'value',
    )

  const targets = readPath(await call('Target.getTargets'), 'targetInfos')
  const page = Array.isArray(targets)
    ? targets.find((target) => readPath(target, 'type') === 'page')
    : undefined
  sessionId = String(
    readPath(
      await call('Target.attachToTarget', { targetId: readPath(page, 'targetId'), flatten: true }),
      'sessionId',
    ),
  )
  for (const domain of ['Network', 'Runtime', 'Log', 'Page']) await call(`${domain}.enable`)
  await call('Emulation.setDeviceMetricsOverride', {
    width: view.width,
    height: 1000,
    deviceScaleFactor: 1,
    mobile: view.width < 600,
  })
  const features = [{ name: 'prefers-color-scheme', value: view.isDark ? 'dark' : 'light' }]
  await call('Emulation.setEmulatedMedia', { features })
  const { hasScripts = true, languages, before } = view
  if (before !== undefined) await call('Page.addScriptToEvaluateOnNewDocument', { source: before })
  if (!hasScripts) await call('Emulation.setScriptExecutionDisabled', { value: true })
  if (languages !== undefined)
    await call('Network.setExtraHTTPHeaders', { headers: { 'Accept-Language': languages } })
  // The page polls the expression itself, once per animation frame.
  const waitFor = async (condition: string) => {
    const isTrue = `location.href !== 'about:blank' && document.body && (${condition})`
    const wait = `new Promise((done) => { const look = () => (${isTrue}) ? done(true) : requestAnimationFrame(look); look() })`
    // A page that loads takes the place of the one that was asked.
    while ((await evaluate(wait).catch(() => false)) !== true);
  }
  const open = async (address: string) => {
    // Another address that differs only in its fragment would not be loaded.
    await call('Page.navigate', { url: 'about:blank' })
    await call('Page.navigate', { url: address })
  }
  const findElement = async (selector: string) => {
    const root = readPath(await call('DOM.getDocument'), 'root', 'nodeId')
    return Number(readPath(await call('DOM.querySelector', { nodeId: root, selector }), 'nodeId'))
  }
  await open(url)
  if (hasScripts) await waitFor(readyWhen)

  return {
    requests,
    consoleErrors,
    evaluate,
    open,
    waitFor,
    async waitForElement(selector) {
      while (!(await findElement(selector).catch(() => 0))) await Bun.sleep(50)
    },
    async focusElement(selector) {
      await call('DOM.focus', { nodeId: await findElement(selector) })
    },
    async press(key) {
      const code = { Tab: 9, Enter: 13, Backspace: 8 }[key] ?? 0
      const event = { key, code: key, windowsVirtualKeyCode: code, ...(key === 'Enter' && { text: '\r' }) }
      await call('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
      await call('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
    },
    type: async (text) => void (await call('Input.insertText', { text })),
    screenshot: async () =>
      String(readPath(await call('Page.captureScreenshot', { captureBeyondViewport: false }), 'data')),
    async close() {
      socket.close()
      browser.kill()
      await browser.exited
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Reads the URL of the DevTools socket from the output of a browser that was just started. */
async function debuggerUrl(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of stderr) {
    text += Buffer.from(chunk).toString()
    const found = /DevTools listening on (ws:\S+)/.exec(text)?.[1]
    if (found !== undefined) return found
  }
  throw new Error(`Chromium did not start: ${text}`)
}

/** Reads a nested property of a message from the browser. */
const readPath = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>(
    (current, name) =>
      typeof current === 'object' && current !== null && name in current
        ? Object.entries(current).find(([key]) => key === name)?.[1]
        : undefined,
    value,
  )
