import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase } from '../../../src/store/data-dir/create-database.ts'
import { dataFiles, prepareDataDir } from '../../../src/store/data-dir/data-dir.ts'
import { openSqlite } from '../../../src/store/sqlite/database.ts'
import { noGuardChanges } from '../../../src/domain/store/guard.ts'
import { createStore } from '../../../src/store/store.ts'
import { createHome } from '../cli-fixture.ts'
import { testKeys } from '../../helpers/keys.ts'

let home: ReturnType<typeof createHome>
let locationFlags: string[]
let dataDir: string

beforeEach(() => {
  home = createHome()
  dataDir = join(home.directory, 'data')
  const config = join(home.directory, 'otpd.toml')
  writeFileSync(config, '[guard]\nmode = "monitor"\ndeniedCountries = ["CU", "KP"]\n')
  locationFlags = ['--data-dir', dataDir, '--config', config]
  prepareDataDir(dataDir, () => {})
  createDatabase(dataDir, { configured: null, isForced: false, now: Date.now() })
})
afterEach(() => home.remove())

/** Records guard verdicts in the database of this directory, dated a number of hours ago. */
async function recordDecisions(country: string, times: number, blocked: boolean, hoursAgo = 0) {
  const database = openSqlite(dataFiles(dataDir).database, { onDiskFault: () => {} })
  const hour = Math.floor(Date.now() / 3_600_000) - hoursAgo
  const { write } = createStore(database, { keys: testKeys })
  const count = blocked ? { flagged: 0, blocked: times } : { flagged: times, blocked: 0 }
  const decision = { hour, rule: 'COUNTRY_UNVERIFIED', country, ...count } as const
  const decisions = new Map([['one', decision]])
  await write((tx) => tx.guard.apply({ ...noGuardChanges(), decisions }))
  await database.close()
}

const countryLimit =
  '20 unverified messages in 24 hours for each phone verified there in 14 days, and 100 from the pool'

const splitRows = (text: string) => text.split('\n').map((line) => line.split(/ {2,}/))

describe('guard status', () => {
  test('shows the mode, every rule with its limit, and that nothing was flagged', async () => {
    const result = await home.otpd(['guard', 'status', ...locationFlags])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    expect(result.stdout).toStartWith(
      'Mode monitor: all codes are sent, and the log shows which would be blocked\n',
    )
    const rows = splitRows(result.stdout)
    expect(rows).toContainEqual(['RULE', 'FLAGGED', 'BLOCKED', 'LIMIT'])
    expect(rows).toContainEqual(['COUNTRY_NOT_ALLOWED', '0', '0', 'all but CU KP'])
    expect(rows).toContainEqual([
      'NUMBER_TYPE',
      '0',
      '0',
      'no premium, sharedCost, personal, satellite, international, fixedLine, company, pager, voicemail, tollFree numbers',
    ])
    expect(rows).toContainEqual(['COUNTRY_UNVERIFIED', '0', '0', countryLimit])
    expect(rows).toContainEqual(['TOTAL_DAILY', '0', '0', 'off'])
    expect(rows.at(-2)?.[0]).toStartWith('Nothing was flagged or blocked since ')
  })

  test('shows that the pool is spent, and that there are many codes of other systems', async () => {
    const database = openSqlite(dataFiles(dataDir).database, { onDiskFault: () => {} })
    const { write } = createStore(database, { keys: testKeys })
    const [hour, day] = [Math.floor(Date.now() / 3_600_000), Math.floor(Date.now() / 86_400_000)]
    const pool = { windows: { unverified: [hour, 300] }, alertedAt: Date.now(), until: day + 2 }
    const relays = { ...pool, windows: { unverified: [hour, 900] } }
    const rows = new Map(Object.entries({ 'dev_1 pool': pool, 'dev_1 relays': relays }))
    await write((tx) => tx.guard.apply({ ...noGuardChanges(), rows }))
    await database.close()
    const { stdout } = await home.otpd(['guard', 'status', ...locationFlags])
    expect(stdout).toMatch(/dev_1 +pool +300 of 300/)
    expect(stdout).toContain('Alert: dev_1 has spent the pool of all countries (until ')
    expect(stdout).toContain('Alert: dev_1 sends more codes of other systems than usual (until ')
  })

  test('names the challenge, where it helps against a refusal', async () => {
    const config = join(home.directory, 'otpd.toml')
    const lines = ['mode = "enforce"', '[guard.challenge]', 'kind = "altcha"']
    writeFileSync(config, ['[guard]', ...lines].join('\n'))
    const enforced = await home.otpd(['guard', 'status', ...locationFlags])
    expect(enforced.stdout).toContain(
      '\nChallenge altcha: users who pass it have three times the allowances\n',
    )
    writeFileSync(config, ['[guard]', ...lines].join('\n').replace('enforce', 'monitor'))
    const monitored = await home.otpd(['guard', 'status', ...locationFlags])
    expect(monitored.stdout).not.toContain('Challenge')
  })

  test('counts the last 24 hours by rule and country, and says how to enable blocking', async () => {
    await recordDecisions('ID', 3, false)
    await recordDecisions('NL', 1, true, 20)
    await recordDecisions('NL', 9, true, 24)
    const result = await home.otpd(['guard', 'status', ...locationFlags])
    const rows = splitRows(result.stdout)
    expect(rows).toContainEqual(['COUNTRY_UNVERIFIED', '3', '1', countryLimit])
    expect(rows).toContainEqual(['ID', 'COUNTRY_UNVERIFIED', '3', '0'])
    expect(rows).toContainEqual(['NL', 'COUNTRY_UNVERIFIED', '0', '1'])
    expect(result.stderr).toContain('remove mode from [guard]')
  })

  test('prints it as JSON', async () => {
    await recordDecisions('ID', 2, false)
    const result = await home.otpd(['guard', 'status', '--json', ...locationFlags])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    const { data } = JSON.parse(result.stdout)
    expect(data).toMatchObject({
      mode: 'monitor',
      alerts: [],
      countries: [{ rule: 'COUNTRY_UNVERIFIED', country: 'ID', flagged: 2, blocked: 0 }],
    })
    expect(data.rules.map(({ rule }: { rule: string }) => rule)).toContain('COUNTRY_UNVERIFIED')
    expect(data.since).toMatch(/:00:00\.000Z$/)
  })
})
