import { beforeAll, expect, test } from 'bun:test'
import { insertDeveloper } from '../../../src/domain/accounts/developers.ts'
import { createRefreshTokens, type RefreshTokens } from '../../../src/domain/accounts/refresh-tokens.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const calls = 20

describeEachDatabase('a refresh token that is sent many times at once', (database) => {
  const clock = testClock()
  const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
  const newId = createIds(clock, random)
  let store: Store
  let refreshTokens: RefreshTokens
  let writes = 0
  beforeAll(() => {
    const real = createStore(database(), { keys: testKeys, clock })
    const write: typeof real.write = (body) => {
      writes++
      return real.write(body)
    }
    store = { ...real, write }
    refreshTokens = createRefreshTokens({
      store,
      clock,
      newId,
      random,
      keys: { refreshToken: Buffer.alloc(32, 1) },
    })
  })

  async function logIn(): Promise<string> {
    const id = newId('dev')
    const person = { id, issuer: 'test', subject: id, email: null, name: null, now: clock.now() }
    const developer = await store.write((tx) => insertDeveloper(tx, person, random))
    const issued = developer && (await refreshTokens.issue({ ...developer, origin: hostOrigin }, 'password'))
    if (!issued) throw new Error('no session began')
    writes = 0
    return issued.refreshToken
  }
  const repeat = <T>(call: () => Promise<T>) => Promise.all(Array.from({ length: calls }, call))

  test('costs no transaction if it is unknown', async () => {
    await logIn()
    await repeat(() => refreshTokens.rotate('rt_unknown', hostOrigin))
    await repeat(() => refreshTokens.revoke('rt_unknown', hostOrigin))
    expect(writes).toBe(0)
  })

  test('is exchanged, and revoked, in one transaction at a time', async () => {
    const token = await logIn()
    const successors = await repeat(() => refreshTokens.rotate(token, hostOrigin))
    expect(new Set(successors.map((one) => one?.refreshToken)).size).toBe(1)
    expect(writes).toBeLessThan(calls / 2)

    writes = 0
    const successor = successors[0]?.refreshToken ?? ''
    await repeat(() => refreshTokens.revoke(successor, hostOrigin))
    expect(writes).toBeLessThan(calls / 2)
    expect(await refreshTokens.rotate(successor, hostOrigin)).toBeUndefined()
  })
})
