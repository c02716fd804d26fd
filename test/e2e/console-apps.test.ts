import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAppsScreen, copyValue, readEnvFile } from '../helpers/console-apps.ts'
import { fillForm, submitForm } from '../helpers/console-form.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { lastCopiedText } from '../helpers/screen.ts'

// Starts a server, a terminal and a dozen commands, which takes long on a busy machine.
setDefaultTimeout(300_000)

const directory = mkdtempSync(join(tmpdir(), 'otpd-console-'))
const savedFile = join(directory, 'web.env')
const planFile = join(directory, 'otpd.toml')
writeFileSync(
  planFile,
  '[plans.free]\nprojects = 3\napplications = 3\nsendPerMinute = 0\nverifyPerMinute = 0\n',
)

let host: ConsoleHost
beforeAll(async () => {
  host = await startConsoleHost({ env: { OTPD_CONFIG: planFile } })
})
afterAll(() => host.stop())

const { openApps, openProject, sendOtp: send } = createAppsScreen(() => host)

describe('from an empty account', () => {
  test('the console says what to do next, until there is an application', async () => {
    const terminal = await openApps()
    await terminal.waitForText('No projects yet')
    expect(terminal.text()).toContain('otpd project create shop')
    terminal.press('n')
    await terminal.waitForText('New project')
    await submitForm(terminal)
    await terminal.waitForText('required')
    await fillForm(terminal, { name: 'shop', description: 'Customer sign-in' })
    await submitForm(terminal)
    await terminal.waitForText('project created')
    await terminal.waitForText('Apps › shop')
    await terminal.waitForText('No applications yet.')
    await terminal.waitForText(/Projects +1 of 3/)
    terminal.press('esc')
    await terminal.waitForText('Press enter, then n to create one.')
    await terminal.waitForText('Customer sign-in')
    await terminal.close()
  })

  test('credentials are shown once: masked until v, copied by y, saved by s, and they work', async () => {
    const terminal = await openProject()
    terminal.press('n')
    await terminal.waitForText('New application')
    await fillForm(terminal, { name: 'web', environment: 'test' })
    await submitForm(terminal)
    await terminal.waitForText('Application web (test) created')
    await terminal.waitForText('esc done')
    expect(terminal.screen()[0]).toMatch(/ test  \d\d:/)
    expect(terminal.text()).toMatch(/secret +••••••••••••\n/)
    expect(terminal.text()).not.toContain('ph_test_secret_')

    // No other key leaves a page that is shown only once.
    terminal.press('3', 'q', '?', 'v')
    await terminal.waitForText('ph_test_secret_')
    expect(terminal.text()).toContain('[2 Apps]')
    terminal.press('v')
    await terminal.waitForTextGone('ph_test_secret_')

    const clientId = await copyValue(terminal, 'client id')
    terminal.press('esc')
    await terminal.waitForText('Leave without saving?')
    terminal.press('esc')
    await terminal.waitForTextGone('Leave without saving?')
    terminal.press('j')
    const clientSecret = await copyValue(terminal, 'client secret')
    terminal.press('j')
    const apiKey = await copyValue(terminal, 'API key')
    expect(terminal.text()).not.toContain(clientSecret)
    const copied = {
      OTPD_CLIENT_ID: clientId,
      OTPD_CLIENT_SECRET: clientSecret,
      OTPD_API_KEY: apiKey,
    }
    expect((await send(copied)).status).toBe(201)

    terminal.press('s')
    await terminal.waitForText('Save the credentials')
    await fillForm(terminal, { file: planFile })
    await submitForm(terminal)
    await terminal.waitForText('Existing files are never overwritten')
    expect(readFileSync(planFile, 'utf8')).toStartWith('[plans.free]')
    await fillForm(terminal, { file: savedFile })
    await submitForm(terminal)
    await terminal.waitForText('saved to')
    expect(statSync(savedFile).mode & 0o777).toBe(0o600)
    expect(readEnvFile(savedFile)).toMatchObject({ ...copied, OTPD_SERVER: host.server.url })
    await host.otpd(['otp', 'send', '+14155550101', '--env-file', savedFile])
    terminal.press('esc')
    await terminal.waitForText(/▸ web +test +● active/)
    expect(terminal.text()).not.toContain(clientSecret)
    await terminal.close()
  })

  test('new credentials survive a terminal that is too small for a moment, and leaving unsaved asks first', async () => {
    const terminal = await openProject()
    terminal.press('n')
    await fillForm(terminal, { name: 'ios', environment: 'live' })
    await submitForm(terminal)
    await terminal.waitForText('Application ios (live) created')
    await terminal.waitForText('esc done')
    terminal.press('v')
    await terminal.waitForText('ph_live_secret_')
    terminal.resize({ columns: 40, rows: 10 })
    await terminal.waitForText('terminal too small')
    terminal.resize({ columns: 60, rows: 16 })
    await terminal.waitForTextGone('terminal too small')
    // In full, on two lines.
    await terminal.waitForText(/ph_live_secret_[0-9a-f]{32}\n +[0-9a-f]{16}/)
    terminal.press('esc')
    await terminal.waitForText('Leave without saving?')
    terminal.press('enter')
    await terminal.waitForText(/▸ ios +LIVE/)
    await terminal.close()
  })
})

describe('projects and applications', () => {
  test('are edited, and an invalid field shows its error', async () => {
    const terminal = await openApps()
    await terminal.waitForText('▸ All applications')
    terminal.press('j')
    await terminal.waitForText('▸ shop')
    terminal.press('e')
    await terminal.waitForText('Edit project')
    await fillForm(terminal, { name: 'shops', description: 'All of it' })
    await submitForm(terminal)
    await terminal.waitForText('project saved')
    await terminal.waitForText('▸ shops')
    await terminal.waitForText('All of it')
    terminal.press('right')
    await terminal.waitForText('Apps › shops')
    terminal.press('/', 'web', 'enter', 'e')
    await terminal.waitForText('Edit application')
    await fillForm(terminal, { 'code lifetime, s': 'ten' })
    await submitForm(terminal)
    await terminal.waitForText('seconds, 60 to 600')
    await fillForm(terminal, { 'code lifetime, s': '5000' })
    await submitForm(terminal)
    await terminal.waitForText('Expected a whole number from 60 to 600')
    await fillForm(terminal, { 'code lifetime, s': '120', language: 'de' })
    await submitForm(terminal)
    await terminal.waitForText('application saved')
    await terminal.waitForText('2 min')
    expect(await host.otpd(['app', 'get', 'web', '--json'])).toContain('"defaultLocale":"de"')
    await terminal.close()
  })

  test('an application is disabled and enabled again', async () => {
    const terminal = await openProject()
    terminal.press('/', 'web', 'enter', 'x')
    await terminal.waitForText('API calls with its credentials are refused')
    terminal.press('enter')
    await terminal.waitForText('○ disabled')
    await terminal.waitForText('x enable')
    expect((await send(readEnvFile(savedFile))).status).toBe(403)
    terminal.press('x', 'enter')
    await terminal.waitForText('● active')
    expect((await send(readEnvFile(savedFile))).status).toBe(201)
    await terminal.close()
  })

  test('a dialog that was left while the server was slow does not close the next one', async () => {
    const terminal = await openProject()
    terminal.press('/', 'web', 'enter', 'x')
    await terminal.waitForText('API calls with its credentials are refused')
    process.kill(host.server.pid, 'SIGSTOP')
    terminal.press('enter')
    await terminal.waitForText('working')
    terminal.press('esc')
    await terminal.waitForTextGone('working')
    terminal.press('e')
    await terminal.waitForText('Edit application')
    process.kill(host.server.pid, 'SIGCONT')
    await terminal.waitForText('application disabled')
    expect(terminal.text()).toContain('Edit application')
    terminal.press('esc')
    await terminal.waitForTextGone('Edit application')
    terminal.press('x', 'enter')
    await terminal.waitForText('● active')
    await terminal.close()
  })

  test('an application that is created while the console is paused is listed and counted', async () => {
    const terminal = await openProject()
    terminal.press('p')
    await terminal.waitForText('paused')
    terminal.press('n')
    await fillForm(terminal, { name: 'quiet' })
    await submitForm(terminal)
    await terminal.waitForText('esc done')
    terminal.press('esc')
    await terminal.waitForText('Leave without saving?')
    terminal.press('enter')
    await terminal.waitForText(/▸ quiet [^]*▸ shops +3 │/)
    terminal.press('D', 'quiet', 'enter')
    await terminal.waitForText('application deleted')
    await terminal.waitForText(/│▸ [^]*▸ shops +2 │/)
    await terminal.close()
  })

  test('a project with applications cannot be deleted, and the key says why', async () => {
    const terminal = await openApps()
    await terminal.waitForText('▸ All applications')
    terminal.press('j')
    await terminal.waitForText('▸ shops')
    terminal.press('D')
    await terminal.waitForText('D is unavailable: the project still has 2 applications')
    terminal.press('y')
    await terminal.waitForText('copied project id')
    expect(lastCopiedText(terminal.written())).toStartWith('prj_')
    await terminal.close()
  })

  test('the key for a new application is unavailable once the limit of the plan is reached', async () => {
    const terminal = await openProject()
    terminal.press('n')
    await fillForm(terminal, { name: 'third' })
    await submitForm(terminal)
    await terminal.waitForText('esc done')
    terminal.press('esc')
    await terminal.waitForText('Leave without saving?')
    terminal.press('enter')
    await terminal.waitForText(/3 of 3 in all/)
    terminal.press('n')
    await terminal.waitForText('n is unavailable: the plan allows at most 3 applications')
    await terminal.close()
  })

  test('an application is deleted after its name is typed', async () => {
    const terminal = await openProject()
    terminal.press('/', 'third', 'enter', 'D')
    await terminal.waitForText('Delete test application')
    terminal.press('enter')
    await terminal.waitForText('type third first')
    terminal.press('third', 'enter')
    await terminal.waitForText('application deleted')
    await terminal.waitForText('No matching rows')
    terminal.press('esc')
    await terminal.waitForText(/2 of 3 in all/)
    await terminal.close()
  })

  test('an empty project is deleted after its name is typed, even if it is long and wide', async () => {
    const name = `${'東京プロジェクト'.repeat(9)} cafe\u0301`
    await host.otpd(['project', 'create', name])
    const terminal = await openApps()
    await terminal.waitForText('▸ ')
    terminal.press('/', '東京', 'enter', 'D')
    await terminal.waitForText('Delete project')
    await terminal.waitForText('Type this to delete')
    // Composed as a keyboard does it: one character for the e and its accent.
    terminal.press(name.normalize('NFC'), 'enter')
    await terminal.waitForText('project deleted')
    expect(await host.otpd(['project', 'list', '--json'])).not.toContain('東京')
    await terminal.close()
  })

  test('a small terminal shows one pane at a time, a larger one both', async () => {
    const terminal = await openApps([], { columns: 60, rows: 16 })
    await terminal.waitForText('▸ All applications')
    terminal.press('j')
    await terminal.waitForText('▸ shops')
    expect(terminal.text()).not.toContain('Applications in')
    terminal.press('enter')
    await terminal.waitForText('Applications in shops')
    expect(terminal.text()).not.toContain('Projects')
    terminal.resize({ columns: 200, rows: 60 })
    await terminal.waitForText(/Projects +1 of 3 +│ Applications in shops +2 of 3 in all/)
    await terminal.waitForText(/▸ ios .* app_[0-9a-z]{26}$/m)
    terminal.resize({ columns: 80, rows: 24 })
    await terminal.waitForTextGone(/▸ ios .* app_/)
    terminal.press('left')
    await terminal.waitForText(/^── shops ──/m)
    await terminal.close()
  })

  test('cannot be changed under --read-only', async () => {
    const terminal = await openApps(['--read-only'])
    await terminal.waitForText('▸ All applications')
    terminal.press('j')
    await terminal.waitForText('▸ shops')
    for (const key of ['n', 'e', 'D']) {
      terminal.press(key)
      await terminal.waitForText(`${key} is unavailable: the console was started with --read-only`)
    }
    terminal.press('enter')
    await terminal.waitForText('▸ ios')
    for (const key of ['n', 'e', 'x', 'D']) {
      terminal.press(key)
      await terminal.waitForText(`${key} is unavailable: the console was started with --read-only`)
    }
    terminal.press('enter')
    await terminal.waitForText('[Credentials]')
    terminal.press('j', 'R')
    await terminal.waitForText('R is unavailable: the console was started with --read-only')
    await terminal.close()
  })
})
