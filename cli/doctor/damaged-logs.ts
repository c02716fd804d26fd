import type { DamagedLog } from '../../src/host/host.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { zonedTime } from '../terminal/text.ts'
import { warning, type Check } from '../../src/shared/check.ts'

/** Warns of a damaged write-ahead log that the server left when it was killed, before the next start applies it. */
export const logDamageChecks = (damage: DamagedLog | null): Check[] =>
  damage === null
    ? []
    : [
        warning(
          'write-ahead log',
          `is damaged: ${damage.framesRead} frames can be read, and ${damage.framesLost} that follow are lost; last written ${zonedTime(new Date(damage.writtenAt).toISOString())}`,
          'The next start applies what can be read, and keeps a copy of the log. A backup that is made now lacks the same changes.',
        ),
      ]

/** Warns of damaged write-ahead logs until a person has deleted them. */
export const damagedLogChecks = (logs: readonly DamagedLog[]): Check[] =>
  logs.map(({ path, framesRead, framesLost, writtenAt }) =>
    warning(
      'write-ahead log',
      `was damaged and applied up to the damage: ${framesRead} frames were read, and ${framesLost} that follow were lost; last written ${zonedTime(new Date(writtenAt).toISOString())}`,
      `Look for changes that are missing, such as in a backup or the log of your backend, and check the disk; then delete it: rm ${shellWord(path)}`,
    ),
  )
