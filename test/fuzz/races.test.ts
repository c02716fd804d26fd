import { test } from 'bun:test'
import { describeEachDatabase } from '../helpers/databases.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import { races } from './races/all.ts'
import { runRounds } from './races/race.ts'

/**
 * Rounds of up to 50 calls, and more until every outcome has occurred. Without a lock a race fails in the first of them;
 * `npm run fuzz` runs 100.
 */
const rounds = 2

describeEachDatabase('concurrent calls:', (database, kind) => {
  const applicableRaces = races.filter(({ sqliteOnly }) => !sqliteOnly || kind === 'SQLite')
  test.each(applicableRaces.map((race) => [race.name, race] as const))(
    '%s',
    async (_, { open }) => {
      const race = await open(database())
      await runRounds(race, rounds, seededRandom(1))
      await race.close()
    },
    300_000,
  )
})
