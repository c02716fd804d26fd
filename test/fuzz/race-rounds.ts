import { openTestPostgres, openTestSqlite } from '../helpers/databases.ts'
import { describeError, seconds, seededRandom, type Part } from './part.ts'
import { races as all } from './races/all.ts'
import { racers, showAll } from './races/race.ts'

/** A database of its own for each so many rounds, so that none grows without end. */
const roundsPerDatabase = 500

const url = process.env['OTPD_TEST_POSTGRES_URL']
const databases = [
  { kind: 'SQLite', open: openTestSqlite },
  ...(url === undefined ? [] : [{ kind: 'PostgreSQL', open: () => openTestPostgres(url) }]),
]

export const races: Part = {
  name: 'races',
  title: `up to ${racers} calls at once, on ${databases.map(({ kind }) => kind).join(' and ')}`,
  async run({ rounds, seed }, print) {
    const findings: string[] = []
    for (const { kind, open } of databases) {
      for (const race of all.filter(({ sqliteOnly }) => !sqliteOnly || kind === 'SQLite')) {
        const started = performance.now()
        const random = seededRandom(seed)
        let done = 0
        let failure: string | undefined
        while (done < rounds && failure === undefined) {
          const { database, dispose } = await open()
          const opened = await race.open(database)
          const until = Math.min(rounds, done + roundsPerDatabase)
          try {
            for (; done < until; done++) await opened.round(done, random)
            await showAll(opened, done, random)
          } catch (error) {
            failure = `${race.name}, ${kind}, round ${done}, seed ${seed}: ${describeError(error)}`
          }
          await opened
            .close()
            .catch((error: unknown) => (failure ??= `${race.name}: ${describeError(error)}`))
          await dispose()
        }
        if (failure !== undefined) findings.push(failure)
        print(
          `${failure === undefined ? 'ok  ' : 'FAIL'} ${done} rounds, ${seconds(started)}: ${race.name} (${kind})`,
        )
      }
    }
    return findings
  },
}
