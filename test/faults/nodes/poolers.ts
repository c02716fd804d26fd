import { hasPgbouncer, pooledStatements, startPgbouncer } from '../../helpers/pgbouncer.ts'
import type { Trial } from '../family.ts'
import { startPostgresServer } from '../../helpers/postgres-server.ts'
import { defineNodeFamily } from './cluster.ts'
import { checkContracts } from './contracts.ts'

export const poolers = defineNodeFamily({
  name: 'nodes-pooler',
  description: 'the limits and single uses once more, through PgBouncer in transaction mode',
  counts: { 'node-pooler-rounds': { full: 25, short: 0 } },
  async run(trial) {
    const rounds = trial.count('node-pooler-rounds')
    if (rounds === 0) return
    if (!hasPgbouncer) {
      process.stdout.write(' - skipped: needs PgBouncer (pgbouncer)\n')
      return
    }
    for (const statements of pooledStatements) await checkThroughPooler(trial, statements, rounds)
  },
})

async function checkThroughPooler(trial: Trial, statements: string, rounds: number) {
  const postgres = await startPostgresServer()
  const pooler = await startPgbouncer(postgres.url, 'transaction')
  try {
    const count = (name: string) => (name === 'node-rounds' ? rounds : 0)
    await checkContracts({ ...trial, count }, `through PgBouncer, statements ${statements}`, {
      postgres,
      databaseUrl: () => pooler.url,
      env: { OTPD_DATABASE_STATEMENTS: statements },
    })
  } finally {
    await pooler.stop()
  }
}
