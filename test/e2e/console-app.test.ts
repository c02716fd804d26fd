import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Application } from '../../cli/client/resources.ts'
import { createAppsScreen, copyValue, readEnvFile } from '../helpers/console-apps.ts'
import { fillForm, submitForm } from '../helpers/console-form.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { createPageVisitor } from '../helpers/page-visitor.ts'
import { lastCopiedText } from '../helpers/screen.ts'

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
setDefaultTimeout(300_000)

const directory = mkdtempSync(join(tmpdir(), 'otpd-console-'))
const savedFile = join(directory, 'web.env')

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' } })
  await host.otpd(['project', 'create', 'shop'])
  await host.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', savedFile])
})
afterAll(() => host.stop())

const { openApp, sendOtp: send } = createAppsScreen(() => host)

describe('an application', () => {
  test('shows previews of its credentials, and masks the webhook secret until v', async () => {
    const secret = (await host.otpd(['app', 'secret', 'web'])).trim()
    const { clientId } = await host.json<Application>(['app', 'get', 'web'])
    const terminal = await openApp('web')
    await terminal.waitForText('Apps › shop › web')
    await terminal.waitForText(clientId)
    await terminal.waitForText(/ph_test_secret_[0-9a-f]{4}\*\*\*\*[0-9a-f]{4}/)
    expect(terminal.screen()[0]).toMatch(/ test  \d\d:/)
    expect(await copyValue(terminal, 'client id')).toBe(clientId)
    terminal.press('R')
    await terminal.waitForText('R is unavailable: the client id never changes')
    terminal.press('j', 'y')
    await terminal.waitForText('y is unavailable: only a hash is stored')
    terminal.press('G')
    await terminal.waitForText('Signs webhook deliveries')
    expect(await copyValue(terminal, 'webhook secret')).toBe(secret)
    expect(terminal.text()).not.toContain(secret)
    terminal.press('v')
    await terminal.waitForText(secret)
    terminal.press(']')
    await terminal.waitForText('[Activity]')
    terminal.press('[')
    await terminal.waitForText('▸ webhook')
    expect(terminal.text()).not.toContain(secret)
    terminal.press('v')
    await terminal.waitForText(secret)
    terminal.press('v')
    await terminal.waitForTextGone(secret)
    await terminal.close()
  })

  test('gets a new credential after its name is typed, and the old one no longer works', async () => {
    const before = readEnvFile(savedFile)
    const terminal = await openApp('web')
    terminal.press('j')
    await terminal.waitForText('▸ secret')
    terminal.press('R')
    await terminal.waitForText('Rotate client secret')
    await terminal.waitForText('The current one stops working immediately.')
    terminal.press('enter')
    await terminal.waitForText('type web first')
    terminal.press('web', 'enter')
    await terminal.waitForText('New client secret for web')
    await terminal.waitForText('esc done')
    const rotatedSecret = await copyValue(terminal, 'client secret')
    expect((await send(before)).status).toBe(401)
    expect((await send({ ...before, OTPD_CLIENT_SECRET: rotatedSecret })).status).toBe(201)
    const path = join(directory, 'secret.env')
    terminal.press('s')
    await fillForm(terminal, { file: path })
    await submitForm(terminal)
    await terminal.waitForText('saved to')
    expect(readEnvFile(path)).toEqual({ OTPD_SERVER: host.server.url, OTPD_CLIENT_SECRET: rotatedSecret })
    terminal.press('enter')
    await terminal.waitForText('rotated just now')
    for (const [name, label] of [
      ['API key', 'API key'],
      ['webhook secret', 'webhook'],
    ]) {
      terminal.press('j')
      await terminal.waitForText(`▸ ${label}`)
      terminal.press('R')
      await terminal.waitForText(`Rotate ${name}`)
      terminal.press('web', 'enter')
      await terminal.waitForText(`New ${name} for web`)
      await terminal.waitForText('esc done')
      const value = await copyValue(terminal, name ?? '')
      if (name === 'API key')
        expect(
          (await send({ ...before, OTPD_CLIENT_SECRET: rotatedSecret, OTPD_API_KEY: value })).status,
        ).toBe(201)
      else expect((await host.otpd(['app', 'secret', 'web'])).trim()).toBe(value)
      terminal.press('enter')
      await terminal.waitForText('[Credentials]')
    }
    await terminal.close()
  })

  test('lists its log, and opens a request and the live log', async () => {
    const terminal = await openApp('web')
    terminal.press(']')
    await terminal.waitForText('[Activity]')
    await terminal.waitForText(/▸ [\d:]+ +→ otp\.sent +\+1415\*\*\*01\d\d/)
    const requestId = await copyValue(terminal, 'request id')
    terminal.press('enter')
    await terminal.waitForText(`OTP › ${requestId}`)
    terminal.press('2')
    // The tab that was open before.
    await terminal.waitForText('[Activity]')
    terminal.press('esc')
    await terminal.waitForText('Applications in shop')
    terminal.press('3')
    await terminal.waitForText('[3 OTP]')
    await terminal.waitForText('▸ ')
    terminal.press('enter')
    // Its keys work once the request is there.
    await terminal.waitForText('What happened')
    terminal.press('a')
    await terminal.waitForText('Apps › shop › web')
    await terminal.waitForText('[Credentials]')
    terminal.press(']')
    await terminal.waitForText('[Activity]')
    terminal.press('o')
    await terminal.waitForText('app: web')
    await terminal.close()
  })

  test('creates a webhook for the application, and opens its deliveries', async () => {
    const terminal = await openApp('web')
    terminal.press(']', ']')
    await terminal.waitForText('No webhooks yet.')
    terminal.press('n')
    await terminal.waitForText(/application +web/)
    await fillForm(terminal, { url: 'https://shop.example.com/hooks' })
    await submitForm(terminal)
    await terminal.waitForText(/▸ https:\/\/shop\.example\.com\/hooks .*● enabled/)
    expect(await copyValue(terminal, 'webhook id')).toStartWith('whk_')
    terminal.press('enter')
    await terminal.waitForText('Deliveries to https://shop.example.com/hooks')
    await terminal.close()
  })

  test('sets up its ready page, makes a link, and shows who was verified there', async () => {
    const terminal = await openApp('web')
    terminal.press(']', ']', ']')
    await terminal.waitForText(/page +○ off/)
    terminal.press('L')
    await terminal.waitForText('L is unavailable: the page is off')
    const logo = join(directory, 'logo.png')
    writeFileSync(logo, Buffer.from('iVBORw0KGgo=', 'base64'))
    terminal.press('P')
    await terminal.waitForText('Users verify their phone there')
    await fillForm(terminal, {
      page: 'on',
      'returns to': 'https://shop.example',
      name: 'The Shop',
      colour: '#0055cc',
      'logo file': logo,
    })
    await submitForm(terminal)
    await terminal.waitForText('page is on')
    for (const shown of [/page +● on/, 'https://shop.example', 'The Shop', '#0055cc', '1 KiB png'])
      await terminal.waitForText(shown)
    // The logo stays if its field is not touched.
    terminal.press('P')
    await terminal.waitForText('Users verify their phone there')
    await submitForm(terminal)
    await terminal.waitForTextGone('Users verify their phone there')
    expect(await host.json(['app', 'page', 'web'])).toMatchObject({
      logo: 'data:image/png;base64,iVBORw0KGgo=',
    })

    const { clientId } = await host.json<Application>(['app', 'get', 'web'])
    const file = join(directory, 'page.env')
    for (const kind of ['secret', 'api'])
      await host.otpd(['rotate', 'web', kind, '--yes', '--env-file', `${file}.${kind}`])
    const values = {
      ...readEnvFile(`${file}.secret`),
      ...readEnvFile(`${file}.api`),
      OTPD_CLIENT_ID: clientId,
    }
    writeFileSync(
      file,
      Object.entries(values)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    )
    await host.otpd(['template', 'set', 'pay', '--app', 'web', '--text', 'en={code}: {amount} to {payee}'])
    terminal.press('L')
    await terminal.waitForText('Credentials of web')
    await fillForm(terminal, { file })
    await submitForm(terminal)
    await terminal.waitForText('Link to the page of web')
    const payment = { template: 'pay', amount: '9.99 EUR' }
    await fillForm(terminal, { 'returns to': 'https://shop.example/back', ...payment })
    await submitForm(terminal)
    await terminal.waitForText('Expected the name of a payee')
    await fillForm(terminal, { payee: 'Ada Books' })
    await submitForm(terminal)
    await terminal.waitForText('copied link')

    const handle = (request: Request) => fetch(request, { redirect: 'manual' })
    const browser = createPageVisitor({ app: { handle } }, lastCopiedText(terminal.written()))
    expect((await browser.get()).text).toContain('<bdi>Ada Books</bdi>')
    await browser.submit({ action: 'send', phone: '+14155550123' })
    await browser.post({ action: 'verify', code: '424242' })
    await terminal.waitForText(/▸ [\d:]+ +\+1415\*\*\*0123 +ses_/)
    const sessionId = await copyValue(terminal, 'session id')
    terminal.press('enter')
    await terminal.waitForText(`metadata      sessionId=${sessionId}`)
    await host.otpd(['template', 'delete', 'pay', '--app', 'web', '--yes'])
    await terminal.close()
  })

  test('writes, changes and removes the texts of its templates', async () => {
    const terminal = await openApp('web')
    terminal.press(']', ']', ']', ']')
    await terminal.waitForText('No templates yet')
    terminal.press('n')
    await terminal.waitForText('New text')
    await fillForm(terminal, { template: 'payment', text: '{code}: {amount}' })
    await submitForm(terminal)
    await terminal.waitForText('The placeholder {payee} is missing.')
    await fillForm(terminal, { text: '{code}: {amount} to {payee}' })
    await submitForm(terminal)
    await terminal.waitForText(/payment +en +1 +\{code\}: \{amount\} to \{payee\}/)
    terminal.press('n')
    await terminal.waitForText('New text')
    await fillForm(terminal, { template: 'payment', language: 'de', text: '{code} für {amount} an {payee}' })
    await submitForm(terminal)
    await terminal.waitForText(/payment +de +1 /)
    // Removes the first text, and leaves the other.
    terminal.press('g', 'T')
    await terminal.waitForText('An empty text removes this language.')
    await fillForm(terminal, { text: '' })
    await submitForm(terminal)
    await terminal.waitForTextGone('to {payee}')
    expect(await host.json(['template', 'get', 'payment', '--app', 'web'])).toMatchObject({
      texts: { de: '{code} für {amount} an {payee}' },
    })
    await terminal.close()
  })

  test('has a quick start whose code runs as copied', async () => {
    const { clientId } = await host.json<Application>(['app', 'get', 'web'])
    // New credentials, as earlier tests rotated the saved ones.
    const freshFile = join(directory, 'fresh.env')
    for (const kind of ['secret', 'api'])
      await host.otpd(['rotate', 'web', kind, '--yes', '--env-file', `${freshFile}.${kind}`])
    const env = {
      ...readEnvFile(`${freshFile}.secret`),
      ...readEnvFile(`${freshFile}.api`),
      PATH: process.env.PATH ?? '',
    }

    const terminal = await openApp('web')
    terminal.press('[')
    await terminal.waitForText('[Quick start]')
    await terminal.waitForText(`OTPD_CLIENT_ID=${clientId}`)
    await terminal.waitForText('more lines')
    terminal.press('G')
    await terminal.waitForTextGone('more lines')
    await terminal.waitForText('"code": "424242"')
    terminal.press('g')
    await terminal.waitForText('OTPD_CLIENT_ID=')
    const curl = await copyValue(terminal, 'the curl snippet')
    expect(curl).not.toContain('ph_test_secret')
    const sent = curl.slice(0, curl.indexOf('# Verify')).replaceAll('curl ', 'curl -sS ')
    const result = Bun.spawnSync(['sh', '-c', sent], { env })
    expect(JSON.parse(result.stdout.toString()).data.status).toBe('pending')

    terminal.press('t')
    await terminal.waitForText('[TypeScript]')
    const file = join(directory, 'quick-start.ts')
    writeFileSync(file, await copyValue(terminal, 'the TypeScript snippet'))
    const verified = Bun.spawnSync([process.execPath, file], { env, stdin: Buffer.from('424242\n') })
    expect(verified.stdout.toString()).toContain('200 verified')
    await terminal.close()
  })

  test('is edited, disabled and deleted on its page, even at the minimum size', async () => {
    await host.otpd(['app', 'create', 'old', '--project', 'shop', '--env', 'live'])
    const terminal = await openApp('old', [], { columns: 60, rows: 16 })
    expect(terminal.text()).toContain('LIVE  ● active')
    terminal.press('e')
    await terminal.waitForText('Edit application')
    await fillForm(terminal, { name: 'older' })
    await submitForm(terminal)
    await terminal.waitForText('Apps › shop › older')
    terminal.press('x', 'enter')
    await terminal.waitForText('LIVE  ○ disabled')
    terminal.press('D')
    await terminal.waitForText('Delete live application')
    terminal.press('older', 'enter')
    await terminal.waitForText('application deleted')
    await terminal.waitForText('Applications in shop')
    await terminal.waitForTextGone('older')
    await terminal.close()
  })
})
