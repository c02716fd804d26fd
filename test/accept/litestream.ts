import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runBinary, runToEnd, startServer } from '../helpers/binary.ts'
import { logIn, makeServerHome } from '../helpers/webhook-client.ts'
import { findLost } from './backups/contents.ts'
import { startLoad } from './backups/load.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

const version = 'v0.5.18'
const recipe = resolve(import.meta.dir, '../../.packaging/recipes/litestream.yml')
const perSecond = 100
const loadMs = 10_000
/** Age of the oldest request that a kill and the loss of the disk may take. */
const lostMsMax = 3_000

/** The recipe of the guide. `OTPD_TEST_LITESTREAM` is the executable; without it, it is built from the Go module. */
export const litestreamCheck: AcceptCheck = {
  name: 'litestream',
  title: `Litestream ${version} next to the server, which is stopped and killed under load`,
  needs: ['go'],
  run: (print) =>
    inFolder(async (folder) => {
      const litestream = process.env['OTPD_TEST_LITESTREAM'] ?? (await build(folder))
      for (const end of ['stopped', 'killed'] as const) {
        const result = await replicate(join(folder, end), litestream, end)
        const { total, lost, oldestMs } = result
        print(
          `${end}: ${lost} of ${total} acknowledged requests lost` +
            (lost === 0 ? '' : `, the oldest ${oldestMs} ms before the end`),
        )
        if (end === 'stopped' && lost > 0) throw new Error('a clean stop lost requests')
        if (oldestMs > lostMsMax) throw new Error(`requests of ${oldestMs} ms before the end are lost`)
      }
    }),
}

/** Replicates a server under load, ends both, and counts what the copy lacks. */
async function replicate(folder: string, litestream: string, end: 'stopped' | 'killed') {
  mkdirSync(folder)
  const server = await startServer(makeServerHome())
  const app = await (await logIn(server.url)).createApplication()
  const config = join(folder, 'litestream.yml')
  writeFileSync(config, toFolder(readFileSync(recipe, 'utf8'), server.dataDir, join(folder, 'copy')))
  const replicator = Bun.spawn([litestream, 'replicate', '-config', config], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  await Bun.sleep(2000)
  const load = startLoad(server.url, app, perSecond)
  await Bun.sleep(loadMs)
  if (end === 'stopped') {
    await load.stop()
    await server.stop()
    // The unit stops Litestream after otpd.
    replicator.kill('SIGTERM')
  } else {
    replicator.kill('SIGKILL')
    await server.stop('SIGKILL')
  }
  const endedAt = Date.now()
  await Promise.all([load.stop(), replicator.exited])

  const copy = join(folder, 'restored.db')
  const database = join(server.dataDir, 'otpd.db')
  const restored = await runToEnd(
    ['sh', '-c', 'umask 077; exec "$@"', '-', litestream, 'restore', '-config', config, '-o', copy, database],
    { cwd: folder, env: { PATH: process.env['PATH'] ?? '' } },
  )
  if (restored.exitCode !== 0) throw new Error(`litestream restore: ${restored.stderr}${restored.stdout}`)
  const acknowledged = load.acknowledged.filter(({ at }) => at <= endedAt)
  const lost = findLost(copy, acknowledged)
  const key = join(server.dataDir, 'master.key')
  const target = await runBinary(folder, ['restore', copy, '--unauthenticated', '--yes'], {
    env: { OTPD_DATA_DIR: join(folder, 'data'), OTPD_MASTER_KEY_FILE: key },
  })
  if (target.exitCode !== 0) throw new Error(`otpd restore: ${target.stderr}`)
  const oldestMs = Math.max(0, ...lost.map(({ at }) => endedAt - at))
  return { total: acknowledged.length, lost: lost.length, oldestMs }
}

/** Turns the recipe into one for another database, whose copy is in a folder. */
function toFolder(text: string, dataDir: string, copy: string): string {
  const changed = text
    .replace('path: /var/lib/otpd/otpd.db\n', `path: ${dataDir}/otpd.db\n`)
    .replace(/type: s3\n(.*\n)*? +region:.*\n/, `type: file\n      path: ${copy}\n`)
  if (!changed.includes(copy) || !changed.includes(`- path: ${dataDir}`))
    throw new Error('the recipe has another form')
  return changed
}

async function build(folder: string): Promise<string> {
  await run(folder, ['go', 'install', `github.com/benbjohnson/litestream/cmd/litestream@${version}`], {
    GOBIN: folder,
    CGO_ENABLED: '0',
  })
  return join(folder, 'litestream')
}
