import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { backUpUnderLoad, compareLatency } from './backups/under-load.ts'
import { startFaultProxy, type ProxyMode } from './backups/fault-proxy.ts'
import { requireCode, startRun, type BackupRun } from './backups/backup-run.ts'
import { motoPackage } from '../helpers/moto.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

/** Bytes before the first chunk of a sealed backup, and of each chunk with its tag. */
const headerBytes = 72
const chunkBytes = 64 * 1024 + 16

export const backupsCheck: AcceptCheck = {
  name: 'backups',
  title: 'scheduled and sealed backups to moto, an S3 server, under load and faults',
  needs: ['python3', 'nice', 'chrt'],
  run: (print) =>
    inFolder(async (folder) => {
      await run(folder, ['python3', '-m', 'venv', 'venv'])
      await run(folder, [join(folder, 'venv/bin/pip'), 'install', '--quiet', motoPackage])
      const one = await startRun(join(folder, 'venv/bin/moto_server'))
      try {
        await backUpUnderLoad(one, print)
        await checkFaults(one, print)
        await checkSecrecy(one, print)
        await checkFlippedBits(one, print)
        await compareLatency(one, print)
      } finally {
        await one.stop()
      }
    }),
}

/** Fails uploads in the middle, and looks for half objects under a final name and for remains on this machine. */
async function checkFaults(
  { proxy, bucket, otpd, startBackup, keys, server }: BackupRun,
  print: (line: string) => void,
) {
  await growDatabase(server.dataDir)
  const before = await keys()
  const remains = () =>
    readdirSync(join(server.dataDir, 'backups')).filter((name) => !name.endsWith('.sealed'))
  const requireNothing = async (fault: string) => {
    const after = await keys()
    if (after.length !== before.length)
      throw new Error(`${fault}: ${after.length - before.length} new objects`)
    if (remains().length > 0) throw new Error(`${fault}: ${remains().join(', ')} remain`)
  }
  for (const mode of ['part 500', 'part 403', 'all 500'] satisfies ProxyMode[]) {
    proxy.set(mode)
    const { stderr } = requireCode(await otpd(['backup']), 6)
    await requireNothing(mode)
    print(
      `${mode}: exit code 6, no object, nothing left: ${stderr.split('\n').find((line) => line.startsWith('Error'))}`,
    )
  }
  // Killed in the middle of an upload.
  const { promise, resolve } = Promise.withResolvers<void>()
  proxy.set('part hangs', resolve)
  const killed = startBackup()
  await promise
  killed.kill('SIGKILL')
  await killed.exited
  await requireNothing('killed')
  print('kill -9 in the middle of an upload: no object, nothing left')
  // The service disappears in the middle of an upload, on an address of its own.
  const cut = startFaultProxy(`${proxy.url}`)
  proxy.set('pass')
  cut.set('part cut')
  const { stderr } = requireCode(await otpd(['backup'], { OTPD_BACKUP_S3_ENDPOINT: cut.url }), 6)
  await requireNothing('part cut')
  print(
    `service stopped in the middle of an upload: ${stderr.split('\n').find((line) => line.startsWith('Error'))}`,
  )
  proxy.set('slow')
  requireCode(await otpd(['backup']), 0)
  proxy.set('pass')
  const [newest = ''] = (await keys()).toSorted().toReversed()
  requireCode(await otpd(['backup', 'verify', newest.replace('otpd/', '')]), 0)
  print(
    `a service that takes 1.5 s for each call: complete and verified, ${(await bucket.stat(newest)).size} bytes`,
  )
}

/** Adds 12 MB that cannot be compressed much, so that uploads have several parts. */
async function growDatabase(dataDir: string) {
  const { Database } = await import('bun:sqlite')
  const database = new Database(join(dataDir, 'otpd.db'))
  database.run('pragma busy_timeout = 10000')
  const insert = database.prepare(`insert into meta (name, value) values (?, hex(randomblob(65536)))`)
  for (let index = 0; index < 90; index++) insert.run(`filler ${index}`)
  insert.finalize()
  database.close()
}

/** Looks for phones and e-mail addresses in an object; the local copy has the addresses. */
async function checkSecrecy({ bucket, keys, otpd, server }: BackupRun, print: (line: string) => void) {
  requireCode(await otpd(['backup', 'local.db']), 0)
  const local = Buffer.from(await Bun.file(join(server.home, 'local.db')).bytes()).toString('latin1')
  if (!local.includes('ada@example.com')) throw new Error('the search finds nothing in a local copy either')
  for (const key of await keys()) {
    const text = Buffer.from(await bucket.file(key).bytes()).toString('latin1')
    for (const pattern of [/\+?1415\d{7}/, /ada@example\.com/, /SQLite format/, /otp_requests/])
      if (pattern.test(text)) throw new Error(`${key} has ${String(pattern)}`)
  }
  print('no phone, e-mail address or table name in any object')
}

/** Flips a bit in the header and in each chunk, and cuts the object between some. */
async function checkFlippedBits({ bucket, keys, otpd }: BackupRun, print: (line: string) => void) {
  const [newest = ''] = (await keys()).toSorted().toReversed()
  const whole = Buffer.from(await bucket.file(newest).bytes())
  let refused = 0
  const requireRefused = async (content: Buffer, what: string) => {
    await bucket.write(newest, new Uint8Array(content))
    const { exitCode, stdout } = await otpd(['backup', 'verify', newest.replace('otpd/', '')])
    if (exitCode !== 6) throw new Error(`${what}: exit code ${exitCode}: ${stdout}`)
    refused++
  }
  const places = [0, 20, 40, headerBytes - 1]
  for (let start = headerBytes; start < whole.length; start += chunkBytes)
    places.push(start + Math.floor(Math.random() * Math.min(chunkBytes, whole.length - start)))
  for (const place of places) {
    const changed = Buffer.from(whole)
    changed[place] = (changed[place] ?? 0) ^ (1 << Math.floor(Math.random() * 8))
    await requireRefused(changed, `bit in byte ${place}`)
  }
  for (let end = headerBytes; end < whole.length; end += 10 * chunkBytes)
    await requireRefused(whole.subarray(0, end), `cut at ${end}`)
  await bucket.write(newest, new Uint8Array(whole))
  requireCode(await otpd(['backup', 'verify', newest.replace('otpd/', '')]), 0)
  print(`${refused} changed or cut objects refused, the whole one accepted`)
}
