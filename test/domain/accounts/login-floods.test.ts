import { expect, test } from 'bun:test'
import { createPasswords } from '../../../src/auth/passwords.ts'
import { createAccountService } from '../../../src/domain/accounts/accounts.ts'
import { createLoginAttempts } from '../../../src/domain/accounts/login-attempts.ts'
import { createSetupTokens } from '../../../src/domain/accounts/setup-tokens.ts'
import { createTotpService } from '../../../src/domain/accounts/totp.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

describeEachDatabase('many logins at once', (database) => {
  test('read what is counted for them two at a time, in turn with those of other networks', async () => {
    const clock = testClock()
    const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
    const store = createStore(database(), { keys: testKeys, clock })
    const needs = { store, clock, wall: clock, newId: createIds(clock, random), random, keys: testKeys }
    const loginAttempts = createLoginAttempts(needs)
    const checked: string[] = []
    let running = 0
    let most = 0
    const accounts = createAccountService({
      ...needs,
      passwords: createPasswords(clock),
      loginAttempts: {
        ...loginAttempts,
        async check(email, client) {
          most = Math.max(most, ++running)
          checked.push(client.network)
          // As long as a database that is not on this machine takes.
          await Bun.sleep(1)
          running--
          return loginAttempts.check(email, client)
        },
      },
      setupTokens: createSetupTokens(needs),
      totp: createTotpService(needs),
    })
    const logIn = (network: string, index: number) =>
      accounts
        .authenticate(`user${index}@example.com`, 'wrong', { network, origin: hostOrigin })
        .catch((error: unknown) => error)
    const flood = Array.from({ length: 100 }, (_, index) => logIn('flood', index))
    await logIn('other', 0)
    expect(most).toBe(2)
    expect(checked.indexOf('other')).toBeLessThan(5)

    // Some wait for a hash, most are refused by a limit, and those that came when too many waited were not checked.
    await Promise.all(flood)
    expect(checked.filter((network) => network === 'flood').length).toBe(62)
  }, 60_000)
})
