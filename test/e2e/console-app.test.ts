import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Application } from '../../cli/resources.ts'
import { appsScreenOf, copyOf, valuesOf } from '../helpers/console-apps.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'

// A terminal, a server and a dozen commands on a busy machine.
setDefaultTimeout(60_000)

const directory = mkdtempSync(join(tmpdir(), 'otpd-console-'))
const savedFile = join(directory, 'web.env')

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' } })
  await host.otpd(['project', 'create', 'shop'])
  await host.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', savedFile])
})
afterAll(() => host.stop())

const { openApp, send } = appsScreenOf(() => host)

describe('an application', () => {
  test('shows its credentials as far as they are kept, with the webhook secret covered until v', async () => {
    const secret = (await host.otpd(['app', 'secret', 'web'])).trim()
    const { clientId } = await host.json<Application>(['app', 'get', 'web'])
    const terminal = await openApp('web')
    await terminal.seen('Apps › shop › web')
    await terminal.seen(clientId)
    await terminal.seen(/ph_test_secret_[0-9a-f]{4}\*\*\*\*[0-9a-f]{4}/)
    expect(terminal.screen()[0]).toMatch(/ test  \d\d:/)
    expect(await copyOf(terminal, 'client id')).toBe(clientId)
    terminal.press('R')
    await terminal.seen('R is unavailable: the client id stays the same')
    terminal.press('j', 'y')
    await terminal.seen('y is unavailable: only a hash of it is stored')
    terminal.press('G')
    await terminal.seen('Deliveries are signed with it')
    expect(await copyOf(terminal, 'webhook secret')).toBe(secret)
    expect(terminal.text()).not.toContain(secret)
    terminal.press('v')
    await terminal.seen(secret)
    terminal.press(']')
    await terminal.seen('[Activity]')
    terminal.press('[')
    await terminal.seen('▸ webhook')
    expect(terminal.text()).not.toContain(secret)
    terminal.press('v')
    await terminal.seen(secret)
    terminal.press('v')
    await terminal.gone(secret)
    await terminal.close()
  })

  test('gets a new credential once its name was typed; the old one works no more', async () => {
    const before = valuesOf(savedFile)
    const terminal = await openApp('web')
    terminal.press('j')
    await terminal.seen('▸ secret')
    terminal.press('R')
    await terminal.seen('Rotate client secret')
    await terminal.seen('The current one stops working at once.')
    terminal.press('enter')
    await terminal.seen('type web first')
    terminal.press('web', 'enter')
    await terminal.seen('New client secret of web')
    await terminal.seen('esc done')
    const fresh = await copyOf(terminal, 'client secret')
    expect((await send(before)).status).toBe(401)
    expect((await send({ ...before, OTPD_CLIENT_SECRET: fresh })).status).toBe(201)
    const path = join(directory, 'secret.env')
    terminal.press('s', '\u0015', path, 'enter')
    await terminal.seen('saved in')
    expect(valuesOf(path)).toEqual({ OTPD_SERVER: host.server.url, OTPD_CLIENT_SECRET: fresh })
    terminal.press('enter')
    await terminal.seen('rotated just now')
    for (const [name, label] of [
      ['API key', 'API key'],
      ['webhook secret', 'webhook'],
    ]) {
      terminal.press('j')
      await terminal.seen(`▸ ${label}`)
      terminal.press('R')
      await terminal.seen(`Rotate ${name}`)
      terminal.press('web', 'enter')
      await terminal.seen(`New ${name} of web`)
      await terminal.seen('esc done')
      const value = await copyOf(terminal, name ?? '')
      if (name === 'API key')
        expect((await send({ ...before, OTPD_CLIENT_SECRET: fresh, OTPD_API_KEY: value })).status).toBe(201)
      else expect((await host.otpd(['app', 'secret', 'web'])).trim()).toBe(value)
      terminal.press('enter')
      await terminal.seen('[Credentials]')
    }
    await terminal.close()
  })

  test('shows what happened to its codes, and leads to one and to the live log', async () => {
    const terminal = await openApp('web')
    terminal.press(']')
    await terminal.seen('[Activity]')
    await terminal.seen(/▸ [\d:]+ +→ otp\.sent +\+1415\*\*\*01\d\d/)
    const requestId = await copyOf(terminal, 'request id')
    terminal.press('enter')
    await terminal.seen(`OTP › ${requestId}`)
    terminal.press('2')
    // Where one left off.
    await terminal.seen('[Activity]')
    terminal.press('o')
    await terminal.seen('app: web')
    await terminal.close()
  })

  test('makes a webhook of its own, and leads to its deliveries', async () => {
    const terminal = await openApp('web')
    terminal.press(']', ']')
    await terminal.seen('Nobody is told of its events yet.')
    terminal.press('n')
    await terminal.seen(/application +web/)
    terminal.press('enter', '\u0015', 'https://shop.example.com/hooks', 'enter', 'enter', 'enter')
    await terminal.seen(/▸ https:\/\/shop\.example\.com\/hooks .*● enabled/)
    expect(await copyOf(terminal, 'webhook id')).toStartWith('whk_')
    terminal.press('enter')
    await terminal.seen('Deliveries to https://shop.example.com/hooks')
    await terminal.close()
  })

  test('says how to call it, in what runs as it is copied', async () => {
    const { clientId } = await host.json<Application>(['app', 'get', 'web'])
    // Made anew, as the tests before this one have replaced what was saved.
    const fresh = join(directory, 'fresh.env')
    for (const kind of ['secret', 'api'])
      await host.otpd(['rotate', 'web', kind, '--yes', '--env-file', `${fresh}.${kind}`])
    const env = { ...valuesOf(`${fresh}.secret`), ...valuesOf(`${fresh}.api`), PATH: process.env.PATH ?? '' }

    const terminal = await openApp('web')
    terminal.press('[')
    await terminal.seen('[Quick start]')
    await terminal.seen(`OTPD_CLIENT_ID=${clientId}`)
    await terminal.seen('more lines')
    terminal.press('G')
    await terminal.gone('more lines')
    await terminal.seen('"code": "424242"')
    terminal.press('g')
    await terminal.seen('OTPD_CLIENT_ID=')
    const curl = await copyOf(terminal, 'the curl snippet')
    expect(curl).not.toContain('ph_test_secret')
    const sent = curl.slice(0, curl.indexOf('# Verify')).replaceAll('curl ', 'curl -sS ')
    const ran = Bun.spawnSync(['sh', '-c', sent], { env })
    expect(JSON.parse(ran.stdout.toString()).data.status).toBe('pending')

    terminal.press('t')
    await terminal.seen('[TypeScript]')
    const file = join(directory, 'quick-start.ts')
    writeFileSync(file, await copyOf(terminal, 'the TypeScript snippet'))
    const verified = Bun.spawnSync([process.execPath, file], { env, stdin: Buffer.from('424242\n') })
    expect(verified.stdout.toString()).toContain('200 verified')
    await terminal.close()
  })

  test('is edited, disabled and deleted from its own page, at the least size too', async () => {
    await host.otpd(['app', 'create', 'old', '--project', 'shop', '--env', 'live'])
    const terminal = await openApp('old', [], { columns: 60, rows: 16 })
    expect(terminal.text()).toContain('LIVE  ● active')
    terminal.press('e')
    await terminal.seen('Edit application')
    terminal.press('er', 'enter', 'enter', 'enter', 'enter', 'enter')
    await terminal.seen('Apps › shop › older')
    terminal.press('x', 'enter')
    await terminal.seen('LIVE  ○ disabled')
    terminal.press('D')
    await terminal.seen('Delete live application')
    terminal.press('older', 'enter')
    await terminal.seen('application deleted')
    await terminal.seen('Applications in shop')
    await terminal.gone('older')
    await terminal.close()
  })
})
