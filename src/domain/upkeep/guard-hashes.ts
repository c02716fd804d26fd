import { contextHashForm, upgradeContext } from '../model/context.ts'
import { guardHashForm } from '../model/guard.ts'
import { upgradeHash, type Keys } from '../model/keys.ts'
import type { KeyWalk } from './key-walks.ts'

/** Creates the walks that bring the guard's hashes to the newest key, so that no count restarts. */
export function createGuardWalks(keys: Pick<Keys, 'guard' | 'context'>): KeyWalk[] {
  const upgradeKnown = (hash: string) =>
    // Those of wide networks are longer than those of contexts.
    hash.replace(/~\d+$/, '').length === contextHashForm(Buffer.alloc(32)).length
      ? upgradeContext(keys, hash)
      : upgradeHash(keys.guard, hash, guardHashForm)
  const upgradeSubject = (subject: string) => {
    const [day = '', hash = ''] = subject.split(' ')
    return hash === 'total' ? subject : `${day} ${upgradeHash(keys.guard, hash, guardHashForm)}`
  }
  const walk = (table: 'contexts' | 'counts', upgrade: (key: string) => string): KeyWalk => ({
    name: `guard.${table}`,
    purpose: 'phone-index',
    async step(tx, position, limit) {
      // Version 1 has nothing to bring up.
      if (keys.guard.length === 1) return undefined
      const rows = await tx.guard.listKeys(table, position, limit)
      for (const key of rows) {
        const upgraded = upgrade(key)
        if (upgraded !== key) await tx.guard.moveKey(table, key, upgraded)
      }
      return rows.at(-1)
    },
  })
  return [walk('contexts', upgradeKnown), walk('counts', upgradeSubject)]
}
