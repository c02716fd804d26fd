import { readPath, startBrowser, type Browser } from './devtools.ts'

/**
 * The shell has no window and no pages of its own, which take half the CPU of a test. Debian's program of that name is a script
 * that would leave it running when a test is killed.
 */
export const chromiumPath =
  Bun.which('chromium-headless-shell', { PATH: `/usr/lib/chromium:${process.env.PATH ?? ''}` }) ??
  Bun.which('chromium') ??
  Bun.which('chromium-browser') ??
  Bun.which('google-chrome')
if (chromiumPath === null) process.stderr.write('Skipped: browser tests. Install Chromium to run them.\n')

export type BrowserPage = {
  /** URLs that the page has requested. */
  requests: string[]
  /** Warnings and errors of the page and the browser, violations of the content security policy included. */
  consoleErrors: string[]
  /** Evaluates an expression in the page. */
  evaluate(expression: string): Promise<unknown>
  /** Loads another address in the same profile. @param view of the page from now on, if it changes */
  open(url: string, view?: PageView): Promise<void>
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

/** Window and color scheme of a page. */
export type PageView = {
  /** Width in CSS pixels. */
  width: number
  isDark: boolean
}

/** The browser of this process: starting one takes more CPU than most tests of a page. */
let started: Promise<Browser> | undefined

/**
 * Opens a page in a headless Chromium, with cookies, storage and cache of its own.
 *
 * @param readyWhen an expression that is true once the page has loaded its content
 * @param view.hasScripts false turns JavaScript off in the page, and with it `evaluate` and `readyWhen`
 * @param view.languages `Accept-Language` of the browser
 * @param view.before script that runs in each document before those of the page, for what no headless browser has
 */
export async function openPage(
  url: string,
  readyWhen: string,
  view: PageView & { hasScripts?: boolean; languages?: string; before?: string } = {
    width: 1280,
    isDark: false,
  },
): Promise<BrowserPage> {
  if (chromiumPath === null) throw new Error('Chromium is not installed.')
  if (!(await started)?.isRunning()) started = startBrowser(chromiumPath)
  const browser = await started
  if (!browser) throw new Error('Chromium did not start.')
  const context = readPath(await browser.call('Target.createBrowserContext'), 'browserContextId')
  const target = { url: 'about:blank', browserContextId: context, width: 1280, height: 1000 }
  const targetId = readPath(await browser.call('Target.createTarget', target), 'targetId')
  const attached = await browser.call('Target.attachToTarget', { targetId, flatten: true })
  const sessionId = String(readPath(attached, 'sessionId'))
  const call = (method: string, params: object = {}) => browser.call(method, params, sessionId)

  const requests: string[] = []
  const consoleErrors: string[] = []
  browser.listen(sessionId, ({ method, params }) => {
    const text = JSON.stringify(params)
    if (method === 'Network.requestWillBeSent') requests.push(String(readPath(params, 'request', 'url')))
    if (method === 'Network.loadingFailed' || method === 'Runtime.exceptionThrown') consoleErrors.push(text)
    if (method === 'Log.entryAdded') consoleErrors.push(text)
    const isPlain = ['log', 'info', 'debug'].includes(String(readPath(params, 'type')))
    if (method === 'Runtime.consoleAPICalled' && !isPlain) consoleErrors.push(text)
  })

  const evaluate = async (expression: string) =>
    readPath(
      await call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }),
      'result',
      'value',
    )

  for (const domain of ['Network', 'Runtime', 'Log', 'Page']) await call(`${domain}.enable`)
  const setView = async ({ width, isDark }: PageView) => {
    const metrics = { width, height: 1000, deviceScaleFactor: 1, mobile: width < 600 }
    await call('Emulation.setDeviceMetricsOverride', metrics)
    const features = [{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }]
    await call('Emulation.setEmulatedMedia', { features })
  }
  await setView(view)
  const { hasScripts = true, languages, before } = view
  if (before !== undefined) await call('Page.addScriptToEvaluateOnNewDocument', { source: before })
  if (!hasScripts) await call('Emulation.setScriptExecutionDisabled', { value: true })
  if (languages !== undefined)
    await call('Network.setExtraHTTPHeaders', { headers: { 'Accept-Language': languages } })
  // The page polls the expression itself. Not in each frame: reading the text of a large page lays it out again.
  const waitFor = async (condition: string) => {
    const isTrue = `location.href !== 'about:blank' && document.body && (${condition})`
    const wait = `new Promise((done) => { const look = () => (${isTrue}) ? done(true) : setTimeout(look, 100); look() })`
    // A page that loads takes the place of the one that was asked.
    while ((await evaluate(wait).catch(() => false)) !== true);
  }
  const open = async (address: string, newView?: PageView) => {
    if (newView) await setView(newView)
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
      browser.listen(sessionId, null)
      await browser.call('Target.disposeBrowserContext', { browserContextId: context })
    },
  }
}
