import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dataFiles } from '../../../src/store/files/data-dir.ts'
import { openSqlite } from '../../../src/store/engine/sqlite.ts'
import { createStore } from '../../../src/store/store.ts'
import { createHome } from '../cli-fixture.ts'

let home: ReturnType<typeof createHome>
let locationFlags: string[]
let dataDir: string

beforeEach(() => {
  home = createHome()
  dataDir = join(home.directory, 'data')
  const config = join(home.directory, 'otpd.toml')
  writeFileSync(config, '[guard]\nmode = "monitor"\ndeniedCountries = ["CU", "KP"]\nprefixPerDay = 0\n')
  locationFlags = ['--data-dir', dataDir, '--config', config]
})
afterEach(() => home.remove())

/** Records guard verdicts in the database of this directory, dated a number of hours ago. */
async function recordDecisions(country: string, times: number, blocked: boolean, hoursAgo = 0) {
  const database = openSqlite(dataFiles(dataDir).database, { onDiskFault: () => {} })
  const hour = Math.floor(Date.now() / 3_600_000) - hoursAgo
  const { write } = createStore(database)
  for (let time = 0; time < times; time++) {
    await write((tx) => tx.guard.addDecision({ hour, rule: 'COUNTRY_HOURLY', country, blocked }))
  }
  await database.close()
}

const splitRows = (text: string) => text.split('\n').map((line) => line.split(/ {2,}/))

describe('guard status', () => {
  test('shows the mode, every rule with its limit, and that nothing was flagged', async () => {
    const result = await home.otpd(['guard', 'status', ...locationFlags])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    expect(result.stdout).toStartWith(
      'Mode monitor: all codes are sent, and the log shows which would be blocked\n',
    )
    const rows = splitRows(result.stdout)
    expect(rows).toContainEqual(['RULE', 'LIMIT', 'FLAGGED', 'BLOCKED'])
    expect(rows).toContainEqual(['COUNTRY_NOT_ALLOWED', 'off', '0', '0'])
    expect(rows).toContainEqual(['COUNTRY_DENIED', 'all but CU KP', '0', '0'])
    expect(rows).toContainEqual(['COUNTRY_HOURLY', '3 unverified, or 20 % of the verified', '0', '0'])
    expect(rows).toContainEqual(['PREFIX_DAILY', 'off', '0', '0'])
    expect(rows).toContainEqual(['ADDRESS_COUNTRIES', '3 countries', '0', '0'])
    expect(rows.at(-2)?.[0]).toStartWith('Nothing was flagged or blocked since ')
  })

  test('counts the last 24 hours by rule and country, and says how to enable blocking', async () => {
    await home.otpd(['guard', 'status', ...locationFlags])
    await recordDecisions('ID', 3, false)
    await recordDecisions('NL', 1, true, 20)
    await recordDecisions('NL', 9, true, 24)
    const result = await home.otpd(['guard', 'status', ...locationFlags])
    const rows = splitRows(result.stdout)
    expect(rows).toContainEqual(['COUNTRY_HOURLY', '3 unverified, or 20 % of the verified', '3', '1'])
    expect(rows).toContainEqual(['ID', 'COUNTRY_HOURLY', '3', '0'])
    expect(rows).toContainEqual(['NL', 'COUNTRY_HOURLY', '0', '1'])
    expect(result.stderr).toContain('mode = "enforce"')
  })

  test('prints it as JSON', async () => {
    await home.otpd(['guard', 'status', ...locationFlags])
    await recordDecisions('ID', 2, false)
    const result = await home.otpd(['guard', 'status', '--json', ...locationFlags])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    const { data } = JSON.parse(result.stdout)
    expect(data).toMatchObject({
      mode: 'monitor',
      countries: [{ rule: 'COUNTRY_HOURLY', country: 'ID', flagged: 2, blocked: 0 }],
    })
    expect(data.rules).toHaveLength(11)
    expect(data.since).toMatch(/:00:00\.000Z$/)
  })
})
