import { Database } from 'bun:sqlite'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dataFiles } from '../../src/store/data-dir/data-dir.ts'
import { startServer } from '../helpers/binary.ts'
import { createSecretScenario, listEncodings, containsCode } from '../helpers/secret-scenario.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'
import { formatElapsed, type FuzzPart } from './fuzz-part.ts'

const roundsPerScenario = 50

export const secrets: FuzzPart = {
  name: 'secrets',
  title: 'a search for every issued secret in everything that the compiled binary writes',
  async run({ rounds }, print) {
    const findings: string[] = []
    for (
      let scenariosLeft = Math.ceil(rounds / roundsPerScenario);
      scenariosLeft > 0 && findings.length === 0;
      scenariosLeft--
    ) {
      const started = performance.now()
      const { texts, scenario } = await runScenario()
      const places = Object.entries(texts)
      for (const [place, text] of places) {
        findings.push(...findSecrets(scenario, text).map((secretName) => `${secretName} appears in ${place}`))
      }
      const bytes = places.reduce((sum, [, text]) => sum + text.length, 0)
      print(
        `${scenario.secrets.size} secrets, ${scenario.codes.size} codes and ${scenario.phones.length} phones in ${scenario.calls()} calls; ` +
          `${places.length} places, ${(bytes / 1e6).toFixed(1)} MB, ${formatElapsed(started)}`,
      )
    }
    return findings
  },
}

/** Runs the binary, with a backup, and kills it, so that the write-ahead log keeps its content. */
async function runScenario() {
  const home = mkdtempSync(join(tmpdir(), 'otpd-secrets-'))
  const receiver = await startReceiver()
  const scenario = createSecretScenario()
  const server = await startServer({
    home,
    env: {
      OTPD_LOG_LEVEL: 'debug',
      OTPD_WEBHOOK_ALLOW: '127.0.0.1',
      OTPD_SEND_PER_MINUTE: '0',
      OTPD_VERIFY_PER_MINUTE: '0',
      OTPD_CONSOLE_PER_MINUTE: '0',
      OTPD_LOOKUPS_PER_MINUTE: '0',
    },
  })
  try {
    await scenario.run({ url: server.url, setupToken: server.setupToken() }, receiver)
    const backup = await server.otpd(['backup', '--data-dir', server.dataDir])
    if (backup.exitCode !== 0) throw new Error(backup.stderr)
    await server.stop('SIGKILL')
    const { masterKey, setupToken } = dataFiles(server.dataDir)
    scenario.secrets.set('master key', readFileSync(masterKey, 'utf8').trim())
    const files = readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      // The files of these two secrets, which only their owner may read.
      .filter((path) => path !== masterKey && path !== setupToken)
    const texts: Record<string, string> = {
      'the log': server.log(),
      'the answers to refused calls': scenario.refusals.map(({ text }) => text).join('\n'),
      'what the backup printed': backup.stdout + backup.stderr,
    }
    for (const path of files) texts[path.slice(home.length)] = readFileSync(path, 'latin1')
    for (const pattern of [/\.db$/, /-wal$/, /backup/]) {
      if (!Object.keys(texts).some((place) => pattern.test(place))) throw new Error(`no file like ${pattern}`)
    }
    for (const path of files.filter((path) => path.endsWith('.db'))) {
      texts[`${path.slice(home.length)}, by its rows`] = dumpRows(path)
    }
    return { scenario, texts }
  } finally {
    await server.stop('SIGKILL')
    await receiver.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

/** Dumps a database by values. In the file they are adjacent, so a code would look like part of the value next to it. */
function dumpRows(path: string): string {
  const connection = new Database(path)
  try {
    const tables = connection
      .query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`)
      .all()
    const rows = tables.flatMap(({ name }) => connection.query(`select * from "${name}"`).values())
    if (rows.length === 0) throw new Error(`${path} is empty`)
    return rows.map((row) => JSON.stringify(row)).join('\n')
  } finally {
    connection.close()
  }
}

/** Names the secrets found in a text. */
function findSecrets(scenario: Awaited<ReturnType<typeof runScenario>>['scenario'], text: string): string[] {
  const found = [...scenario.secrets].filter(([, secret]) =>
    listEncodings(secret).some((form) => text.includes(form)),
  )
  const codes = [...scenario.codes].filter((code) => containsCode(text, code))
  const phones = scenario.phones.filter((phone) => text.includes(phone.slice(-8)))
  return [...found.map(([name]) => name), ...codes.map(() => 'a code'), ...phones.map(() => 'a phone number')]
}
