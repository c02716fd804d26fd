import { existsSync, rmSync, writeFileSync } from 'node:fs'
import type { Store } from '../domain/store/store.ts'
import type { Log } from '../log/log.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Services } from './services.ts'
import type { Cleanups } from './shutdown.ts'
import type { Storage } from './storage.ts'
import type { World } from '../world/world.ts'

const setupTokenCheckMs = 2_000

/**
 * While there is no account, issues a setup token for the person who can read this machine's files. Nodes of a shared
 * database issue none: each would replace that of the last.
 */
export async function publishSetupToken(
  services: Services,
  { setupTokenFile: path }: Storage,
  { store, log, cleanups, world }: { store: Store<'accounts'>; log: Log; cleanups: Cleanups; world: World },
) {
  if (path === null) {
    if (services.builtIn && !(await store.read.accounts.hasAny()))
      log.info('there is no account yet; create the first one: otpd admin create')
    return undefined
  }
  const setupToken = services.builtIn ? await services.setupTokens.issueForFirstStart() : undefined
  rmSync(path, { force: true })
  if (setupToken) writeFileSync(path, `${setupToken.token}\n`, { mode: 0o600, flag: 'wx' })
  if (!setupToken) return undefined
  // The next start replaces a token that was not used.
  cleanups.push(() => rmSync(path, { force: true }))
  // Another process may have created the first account, which invalidates the token.
  const removeUsed = async () => {
    if (existsSync(path) && (await store.read.accounts.hasAny())) rmSync(path)
  }
  cleanups.push(startPeriodicTask(setupTokenCheckMs, world, log, removeUsed, { changes: store.changes }))
  return setupToken
}
