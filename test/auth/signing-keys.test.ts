import { expect, test } from 'bun:test'
import { createSigningKeys } from '../../src/auth/signing-keys.ts'
import { createIds } from '../../src/domain/model/ids.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from '../helpers/clock.ts'
import { openTestSqlite } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)

test('a new key is sealed with the data key of its own write', async () => {
  const opened = await openTestSqlite()
  try {
    const keys = { signingKey: Buffer.alloc(32, 1) }
    const stored = createStore(opened.database, { keys: testKeys })
    const store: typeof stored = {
      ...stored,
      // A write reads the data keys again if another process has replaced them.
      write(work) {
        keys.signingKey = Buffer.alloc(32, 2)
        return stored.write(work)
      },
    }
    const clock = testClock()
    const signingKeys = createSigningKeys({ store, clock, newId: createIds(clock, random), random, keys })
    const kid = await signingKeys.rotate()
    expect((await signingKeys.current()).kid).toBe(kid)
  } finally {
    await opened.dispose()
  }
})
