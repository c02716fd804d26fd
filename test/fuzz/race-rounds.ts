import { openTestPostgres, openTestSqlite } from '../helpers/databases.ts'
import { describeError, formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import { races as all } from './races/all.ts'
import { concurrentCalls, requireAllOutcomes } from './races/race.ts'

/** A new database is opened after this many rounds, so that none grows without bound. */
const roundsPerDatabase = 500

const url = process.env['OTPD_TEST_POSTGRES_URL']
const databases = [
  { kind: 'SQLite', open: openTestSqlite },
  ...(url === undefined ? [] : [{ kind: 'PostgreSQL', open: () => openTestPostgres(url) }]),
]

export const races: FuzzPart = {
  name: 'races',
  title: `up to ${concurrentCalls} concurrent calls, on ${databases.map(({ kind }) => kind).join(' and ')}`,
  async run({ rounds, seed }, print) {
    const findings: string[] = []
    for (const { kind, open } of databases) {
      for (const race of all.filter(({ sqliteOnly }) => !sqliteOnly || kind === 'SQLite')) {
        const started = performance.now()
        const random = seededRandom(seed)
        let completed = 0
        let failure: string | undefined
        while (completed < rounds && failure === undefined) {
          const { database, dispose } = await open()
          const openRace = await race.open(database)
          const batchEnd = Math.min(rounds, completed + roundsPerDatabase)
          try {
            for (; completed < batchEnd; completed++) await openRace.round(completed, random)
            await requireAllOutcomes(openRace, completed, random)
          } catch (error) {
            failure = `${race.name}, ${kind}, round ${completed}, seed ${seed}: ${describeError(error)}`
          }
          await openRace
            .close()
            .catch((error: unknown) => (failure ??= `${race.name}: ${describeError(error)}`))
          await dispose()
        }
        if (failure !== undefined) findings.push(failure)
        print(
          `${failure === undefined ? 'ok  ' : 'FAIL'} ${completed} rounds, ${formatElapsed(started)}: ${race.name} (${kind})`,
        )
      }
    }
    return findings
  },
}
