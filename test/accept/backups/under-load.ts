import { findLost } from './contents.ts'
import { p99, startLoad } from './load.ts'
import { requireCode, type BackupRun } from './backup-run.ts'

/** Backups that are made under load. */
const backups = 10
const perSecond = 100
/** Times that the slowest sends may grow by while a backup runs. */
const growthMax = 1.2

/** Makes backups under load, restores each, and looks for what was acknowledged before it started. */
export async function backUpUnderLoad(
  { server, app, otpd, restore }: BackupRun,
  print: (line: string) => void,
) {
  const load = startLoad(server.url, app, perSecond)
  const made: { file: string; startedAt: number; seconds: number; bytes: number }[] = []
  await Bun.sleep(3000)
  for (let index = 0; index < backups; index++) {
    const startedAt = Date.now()
    const { stdout } = requireCode(await otpd(['backup', '--json']), 0)
    const { file, bytes } = JSON.parse(stdout).data
    made.push({ file, startedAt, bytes, seconds: (Date.now() - startedAt) / 1000 })
    await Bun.sleep(500)
  }
  await load.stop()
  if (load.refused() > 0) throw new Error(`${load.refused()} calls were refused`)
  for (const { file, startedAt } of made) {
    const before = load.acknowledged.filter(({ at }) => at < startedAt)
    const lost = findLost(await restore(file), before)
    if (lost.length > 0) throw new Error(`${file} lacks ${lost.length} of ${before.length} requests`)
  }
  const seconds = Math.max(...made.map((one) => one.seconds))
  print(
    `${backups} backups under ${perSecond} sends a second, at most ${seconds.toFixed(1)} s and ${made.at(-1)?.bytes} bytes: ` +
      `each restored, none of ${load.acknowledged.length} acknowledged requests lost`,
  )
}

/**
 * Compares the slowest sends with and without a backup under way, in turns. The best of three rounds counts, because other
 * programs on the machine disturb single ones.
 *
 * @throws Error sends take too much longer in each round
 */
export async function compareLatency(one: BackupRun, print: (line: string) => void) {
  const growths: number[] = []
  one.setServiceAside()
  while (growths.length < 3 && !growths.some((growth) => growth <= growthMax)) {
    const { without, during } = await measureRound(one)
    growths.push(during / without)
    print(`p99 of a send: ${without.toFixed(1)} ms without, ${during.toFixed(1)} ms during backups`)
  }
  const best = Math.min(...growths)
  if (best > growthMax) throw new Error(`sends take ${best.toFixed(2)} times as long`)
}

async function measureRound({ server, serviceUrl, app, startBackup }: BackupRun) {
  const load = startLoad(server.url, app, perSecond)
  await Bun.sleep(2000)
  const durations: { without: number[]; during: number[] } = { without: [], during: [] }
  for (let turn = 0; turn < 3; turn++) {
    load.takeDurations()
    await Bun.sleep(8_000)
    durations.without.push(...load.takeDurations())
    const end = performance.now() + 8_000
    while (performance.now() < end) {
      // Not through the proxy, which shares a thread with the load.
      const child = startBackup({ OTPD_BACKUP_S3_ENDPOINT: serviceUrl })
      if ((await child.exited) !== 0) throw new Error(await child.stderr.text())
    }
    durations.during.push(...load.takeDurations())
  }
  await load.stop()
  return { without: p99(durations.without), during: p99(durations.during) }
}
