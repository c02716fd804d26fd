import type { BackupRows } from '../store/data-dir/backup.ts'

/** A backup that otpd named, at the place where it is kept. */
export type StoredBackup = {
  name: string
  /** Milliseconds since the epoch. */
  at: number
  bytes: number
  /**
   * `verified`: it was read back and is whole. `unverified`: it was made with a master key at hand, but never read back.
   * `another key`: it belongs to another installation, or to a master key of before.
   */
  state: 'verified' | 'unverified' | 'another key'
  rows?: BackupRows
}

/**
 * Chooses what pruning deletes: all backups that are older than the newest `keep` that verified. Those of another master
 * key are never chosen, nor those whose time has not come: they were made while the clock was wrong, and would count as the
 * newest from now on, so that each new one would be deleted.
 *
 * @param now milliseconds since the epoch
 */
export function choosePruned(backups: readonly StoredBackup[], keep: number, now: number): StoredBackup[] {
  const newestFirst = backups.filter(({ at }) => at <= now).toSorted((a, b) => b.at - a.at)
  const oldestKept = newestFirst.filter(({ state }) => state === 'verified')[keep - 1]
  if (!oldestKept) return []
  return newestFirst.filter(({ at, state }) => at < oldestKept.at && state !== 'another key')
}

/** Chooses the newest backup of a key at hand that verified; if none did, the newest. */
export function chooseLatest(backups: readonly StoredBackup[]): StoredBackup | undefined {
  const newestFirst = backups.filter(({ state }) => state !== 'another key').toSorted((a, b) => b.at - a.at)
  return newestFirst.find(({ state }) => state === 'verified') ?? newestFirst[0]
}
