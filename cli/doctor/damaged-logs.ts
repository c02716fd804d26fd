import type { DamagedLog } from '../../src/host/host.ts'
import { shellWord, zonedTime } from '../terminal/text.ts'
import { warning, type Check } from './check.ts'

/** Warns of damaged write-ahead logs until a person has deleted them. */
export const damagedLogChecks = (logs: readonly DamagedLog[]): Check[] =>
  logs.map(({ path, framesRead, framesLost, writtenAt }) =>
    warning(
      'write-ahead log',
      `was damaged and applied up to the damage: ${framesRead} frames were read, and ${framesLost} that follow were lost; last written ${zonedTime(new Date(writtenAt).toISOString())}`,
      `Look for changes that are missing, such as in a backup or the log of your backend, and check the disk; then delete it: rm ${shellWord(path)}`,
    ),
  )
