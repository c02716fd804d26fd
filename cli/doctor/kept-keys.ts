import type { KeptKeysInspection } from '../../src/host/host.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { listShort } from '../terminal/text.ts'
import { ok, warning, type Check } from '../../src/shared/check.ts'

/** Reports on master keys that were replaced: which backups need each, and whether it can be deleted. */
export function keptKeyChecks({ keys, folders, unread }: KeptKeysInspection): Check[] {
  return keys.map(({ path, neededBy }) => {
    const name = 'old master key'
    if (neededBy.length > 0) return ok(name, `${path}, for backups of its time: ${listShort(neededBy)}`)
    if (unread !== null) return ok(name, `${path}, for backups of its time in ${unread}`)
    return warning(
      name,
      `${path} is needed by no backup in ${folders.join(' or ')}`,
      `Unless copies of older backups are elsewhere, delete it: rm ${shellWord(path)}`,
    )
  })
}
