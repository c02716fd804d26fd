import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAppAuthenticator } from '../../../src/auth/app-authenticator.ts'
import type { AppAuth } from '../../../src/domain/apps/authentication.ts'
import type { Clock } from '../../../src/domain/model/clock.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { connect, type SqliteOptions } from '../../../src/store/sqlite/database.ts'
import { withReadonlyConnection } from '../../../src/store/data-dir/backup.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { openTestFile } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { findCommits } from '../../helpers/wal.ts'

/** A data file that a process has opened, with what it remembers of it. */
export type Process = { database: Database; store: Store; appAuth: AppAuth }

/** `host` is a host command, which runs next to the server. */
export type ProcessName = 'server' | 'host'

export type Processes = ReturnType<typeof createProcesses>

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
const open = (path: string, options: Partial<SqliteOptions>, clock: Clock | undefined): Process => {
  const database = openTestFile(path, options)
  shareGuardRows(database)
  const store = createStore(database, { keys: testKeys, ...(clock && { clock }) })
  return {
    database,
    store,
    appAuth: createAppAuthenticator({ store, keys: testKeys, clock: testClock(), random }),
  }
}

/**
 * Writes all rows of the guard with the calls that change them, where a server holds some of them back for ten seconds: here
 * two processes send, and each must see what the other one has counted.
 */
function shareGuardRows({ sqlite }: Database): void {
  const rows = sqlite?.guardRows
  if (!rows) return
  const { change } = rows
  rows.change = (changed) => {
    change(changed)
    rows.write()
  }
}

/**
 * Creates a data file, and opens processes on it as they are used. All of them run inside this one.
 *
 * @param clock that of the processes; the machine's by default
 */
export function createProcesses(content: Uint8Array, options: Partial<SqliteOptions>, clock?: Clock) {
  const hostOptions = {
    ...options,
    listLimits: { recentMax: Infinity, sliceRows: 0 },
    phoneTailMax: Infinity,
  }
  const folder = mkdtempSync(join(tmpdir(), 'otpd-model-'))
  const running = new Map<ProcessName, Process>()
  let files = 0
  const newPath = () => join(folder, `${files++}.db`)
  let path = newPath()
  writeFileSync(path, content)

  const walPath = () => `${path}-wal`

  async function exit(name: ProcessName): Promise<void> {
    await running.get(name)?.database.close()
    running.delete(name)
  }

  async function exitAll(): Promise<void> {
    for (const name of running.keys()) await exit(name)
  }

  return {
    get(name: ProcessName): Process {
      let process = running.get(name)
      if (!process) running.set(name, (process = open(path, name === 'host' ? hostOptions : options, clock)))
      return process
    },
    isRunning: (name: ProcessName) => running.has(name),
    exit,
    exitAll,

    walBytes: () => (existsSync(walPath()) ? statSync(walPath()).size : 0),

    /**
     * Kills all processes, and leaves the file as it was when its write-ahead log had so many bytes: between two writes, or
     * within one.
     */
    async kill(walBytes: number): Promise<void> {
      const [content, wal] = [readFileSync(path), existsSync(walPath()) ? readFileSync(walPath()) : undefined]
      await exitAll()
      path = newPath()
      writeFileSync(path, content)
      if (!wal) return
      writeFileSync(walPath(), wal.subarray(0, walBytes))
      // Recovers the log, so that its size tells again how much is in it.
      const connection = connect(path, 0)
      connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
      connection.close()
    },

    /** Finds the end of the first transaction behind an offset of the write-ahead log. */
    firstCommitAfter(offset: number): number | undefined {
      return existsSync(walPath())
        ? findCommits(readFileSync(walPath())).find((end) => end > offset)
        : undefined
    },

    /** Copies the committed data. @returns a function that stops all processes and puts the copy in place */
    backUp(): () => Promise<void> {
      const backup = newPath()
      withReadonlyConnection(path, (connection) => void connection.run('VACUUM INTO ?', [backup]))
      return async () => {
        await exitAll()
        path = newPath()
        copyFileSync(backup, path)
      }
    },

    async [Symbol.asyncDispose]() {
      await exitAll()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
