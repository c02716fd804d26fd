import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { appsScreenOf, copyOf, valuesOf } from '../helpers/console-apps.ts'
import { startConsoleHost, type ConsoleHost } from '../helpers/console.ts'
import { copiedIn } from '../helpers/screen.ts'

// A terminal, a server and a dozen commands on a busy machine.
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

const { openApps, openProject, send } = appsScreenOf(() => host)

describe('from an empty account', () => {
  test('what to do next is said, down to the first application', async () => {
    const terminal = await openApps()
    await terminal.seen('No projects yet')
    expect(terminal.text()).toContain('otpd project create shop')
    terminal.press('n')
    await terminal.seen('New project')
    terminal.press('enter', 'enter')
    await terminal.seen('is needed')
    terminal.press('shop', 'enter', 'Customer sign-in', 'enter')
    await terminal.seen('project created')
    await terminal.seen('Apps › shop')
    await terminal.seen('No applications yet.')
    await terminal.seen(/Projects +1 of 3/)
    terminal.press('esc')
    await terminal.seen('tab, then n makes one.')
    await terminal.seen('Customer sign-in')
    await terminal.close()
  })

  test('credentials are shown once: covered until v, copied by y, saved by s, and they work', async () => {
    const terminal = await openProject()
    terminal.press('n')
    await terminal.seen('New application')
    terminal.press('web', 'enter')
    await terminal.seen('[test]')
    terminal.press('enter')
    await terminal.seen('Application web (test) was created')
    await terminal.seen('esc done')
    expect(terminal.screen()[0]).toMatch(/ test  \d\d:/)
    expect(terminal.text()).toMatch(/secret +••••••••••••\n/)
    expect(terminal.text()).not.toContain('ph_test_secret_')

    // No other key leads away from what is shown only now.
    terminal.press('3', 'q', '?', 'v')
    await terminal.seen('ph_test_secret_')
    expect(terminal.text()).toContain('[2 Apps]')
    terminal.press('v')
    await terminal.gone('ph_test_secret_')

    const clientId = await copyOf(terminal, 'client id')
    terminal.press('esc')
    await terminal.seen('Leave without saving?')
    terminal.press('esc')
    await terminal.gone('Leave without saving?')
    terminal.press('j')
    const clientSecret = await copyOf(terminal, 'client secret')
    terminal.press('j')
    const apiKey = await copyOf(terminal, 'API key')
    expect(terminal.text()).not.toContain(clientSecret)
    const copied = {
      OTPD_CLIENT_ID: clientId,
      OTPD_CLIENT_SECRET: clientSecret,
      OTPD_API_KEY: apiKey,
    }
    expect((await send(copied)).status).toBe(201)

    terminal.press('s')
    await terminal.seen('Save the credentials')
    terminal.press('\u0015', planFile, 'enter')
    await terminal.seen('No file is ever overwritten')
    expect(readFileSync(planFile, 'utf8')).toStartWith('[plans.free]')
    terminal.press('\u0015', savedFile, 'enter')
    await terminal.seen('saved in')
    expect(statSync(savedFile).mode & 0o777).toBe(0o600)
    expect(valuesOf(savedFile)).toMatchObject({ ...copied, OTPD_SERVER: host.server.url })
    await host.otpd(['otp', 'send', '+14155550101', '--env-file', savedFile])
    terminal.press('esc')
    await terminal.seen(/▸ web +test +● active/)
    expect(terminal.text()).not.toContain(clientSecret)
    await terminal.close()
  })

  test('credentials outlive a terminal that was too small for a moment, and leaving unsaved is asked', async () => {
    const terminal = await openProject()
    terminal.press('n', 'ios', 'enter', 'l', 'enter')
    await terminal.seen('Application ios (live) was created')
    await terminal.seen('esc done')
    terminal.press('v')
    await terminal.seen('ph_live_secret_')
    terminal.resize({ columns: 40, rows: 10 })
    await terminal.seen('terminal too small')
    terminal.resize({ columns: 60, rows: 16 })
    await terminal.gone('terminal too small')
    // Whole, though it takes two lines.
    await terminal.seen(/ph_live_secret_[0-9a-f]{32}\n +[0-9a-f]{16}/)
    terminal.press('esc')
    await terminal.seen('Leave without saving?')
    terminal.press('enter')
    await terminal.seen(/▸ ios +LIVE/)
    await terminal.close()
  })
})

describe('projects and applications', () => {
  test('are edited, and a field that is wrong says so', async () => {
    const terminal = await openApps()
    await terminal.seen('▸ shop')
    terminal.press('e')
    await terminal.seen('Edit project')
    terminal.press('s', 'enter', '\u0015', 'All of it', 'enter')
    await terminal.seen('project saved')
    await terminal.seen('▸ shops')
    await terminal.seen('All of it')
    terminal.press('tab')
    await terminal.seen('Apps › shops')
    terminal.press('/', 'web', 'enter', 'e')
    await terminal.seen('Edit application')
    terminal.press('enter', '\u0015', 'ten', 'enter', 'enter', 'enter', 'enter')
    await terminal.seen('seconds, 60 to 600')
    terminal.press('\u0015', '5000', 'enter', 'enter', 'enter', 'enter')
    await terminal.seen('Expected a whole number from 60 to 600')
    terminal.press(
      'shift-tab',
      'shift-tab',
      'shift-tab',
      '\u0015',
      '120',
      'enter',
      'de',
      'enter',
      'enter',
      'enter',
    )
    await terminal.seen('application saved')
    await terminal.seen('2 min')
    expect(await host.otpd(['app', 'get', 'web', '--json'])).toContain('"defaultLocale":"de"')
    await terminal.close()
  })

  test('an application is disabled and enabled', async () => {
    const terminal = await openProject()
    terminal.press('/', 'web', 'enter', 'x')
    await terminal.seen('Every call with its credentials is refused')
    terminal.press('enter')
    await terminal.seen('○ disabled')
    await terminal.seen('x enable')
    expect((await send(valuesOf(savedFile))).status).toBe(403)
    terminal.press('x', 'enter')
    await terminal.seen('● active')
    expect((await send(valuesOf(savedFile))).status).toBe(201)
    await terminal.close()
  })

  test('a dialog that was left while the server was slow closes no other one', async () => {
    const terminal = await openProject()
    terminal.press('/', 'web', 'enter', 'x')
    await terminal.seen('Every call with its credentials is refused')
    process.kill(host.server.pid, 'SIGSTOP')
    terminal.press('enter')
    await terminal.seen('working')
    terminal.press('esc')
    await terminal.gone('working')
    terminal.press('e')
    await terminal.seen('Edit application')
    process.kill(host.server.pid, 'SIGCONT')
    await terminal.seen('application disabled')
    expect(terminal.text()).toContain('Edit application')
    terminal.press('esc')
    await terminal.gone('Edit application')
    terminal.press('x', 'enter')
    await terminal.seen('● active')
    await terminal.close()
  })

  test('what is made while the console is paused is on the screen, and counted', async () => {
    const terminal = await openProject()
    terminal.press('p')
    await terminal.seen('paused')
    terminal.press('n', 'quiet', 'enter', 'enter')
    await terminal.seen('esc done')
    terminal.press('esc')
    await terminal.seen('Leave without saving?')
    terminal.press('enter')
    await terminal.seen(/▸ shops +3 │▸ quiet/)
    terminal.press('D', 'quiet', 'enter')
    await terminal.seen('application deleted')
    await terminal.seen(/▸ shops +2 │▸ /)
    await terminal.close()
  })

  test('a project with applications cannot be deleted, and says why', async () => {
    const terminal = await openApps()
    await terminal.seen('▸ shops')
    terminal.press('D')
    await terminal.seen('D is unavailable: the project still has 2 applications')
    terminal.press('y')
    await terminal.seen('copied project id')
    expect(copiedIn(terminal.written())).toStartWith('prj_')
    await terminal.close()
  })

  test('what the plan does not allow is said before it is asked for', async () => {
    const terminal = await openProject()
    terminal.press('n', 'third', 'enter', 'enter')
    await terminal.seen('esc done')
    terminal.press('esc')
    await terminal.seen('Leave without saving?')
    terminal.press('enter')
    await terminal.seen(/3 of 3 in all/)
    terminal.press('n')
    await terminal.seen('n is unavailable: the plan allows no more than 3 applications')
    await terminal.close()
  })

  test('an application is deleted once its name was typed', async () => {
    const terminal = await openProject()
    terminal.press('/', 'third', 'enter', 'D')
    await terminal.seen('Delete test application')
    terminal.press('enter')
    await terminal.seen('type third first')
    terminal.press('third', 'enter')
    await terminal.seen('application deleted')
    await terminal.seen('No such rows')
    terminal.press('esc')
    await terminal.seen(/2 of 3 in all/)
    await terminal.close()
  })

  test('an empty project is deleted once its name was typed, however wide and long that is', async () => {
    const name = `${'東京プロジェクト'.repeat(9)} cafe\u0301`
    await host.otpd(['project', 'create', name])
    const terminal = await openApps()
    await terminal.seen('▸ ')
    terminal.press('/', '東京', 'enter', 'D')
    await terminal.seen('Delete project')
    await terminal.seen('Type this to delete')
    // As a keyboard writes it: one character for the e and its accent.
    terminal.press(name.normalize('NFC'), 'enter')
    await terminal.seen('project deleted')
    expect(await host.otpd(['project', 'list', '--json'])).not.toContain('東京')
    await terminal.close()
  })

  test('one pane at a time is shown where there is little room, and both after a resize', async () => {
    const terminal = await openApps([], { columns: 60, rows: 16 })
    await terminal.seen('▸ shops')
    expect(terminal.text()).not.toContain('Applications in')
    terminal.press('enter')
    await terminal.seen('Applications in shops')
    expect(terminal.text()).not.toContain('Projects')
    terminal.resize({ columns: 200, rows: 60 })
    await terminal.seen(/Projects +1 of 3 +│ Applications in shops +2 of 3 in all/)
    await terminal.seen(/▸ ios .* app_[0-9a-z]{26}$/m)
    terminal.resize({ columns: 80, rows: 24 })
    await terminal.gone(/▸ ios .* app_/)
    terminal.press('shift-tab')
    await terminal.seen(/^── shops ──/m)
    await terminal.close()
  })

  test('cannot be changed under --read-only', async () => {
    const terminal = await openApps(['--read-only'])
    await terminal.seen('▸ shops')
    for (const key of ['n', 'e', 'D']) {
      terminal.press(key)
      await terminal.seen(`${key} is unavailable: not in a console`)
    }
    terminal.press('enter')
    await terminal.seen('▸ ios')
    for (const key of ['n', 'e', 'x', 'D']) {
      terminal.press(key)
      await terminal.seen(`${key} is unavailable: not in a console`)
    }
    terminal.press('enter')
    await terminal.seen('[Credentials]')
    terminal.press('j', 'R')
    await terminal.seen('R is unavailable: not in a console')
    await terminal.close()
  })
})
