import { test } from 'bun:test'
import { describeEachDatabase } from '../helpers/databases.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import { races } from './races/all.ts'
import { runRounds } from './races/race.ts'

describeEachDatabase('concurrent calls:', (database, kind) => {
  // Rounds of up to 50 calls, and more until every outcome has occurred. `npm run fuzz` runs 100.
  const rounds = kind === 'PGlite' ? 3 : 10

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
