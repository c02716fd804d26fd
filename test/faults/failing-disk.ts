import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RunningServer } from '../helpers/binary.ts'
import type { TestApp } from '../helpers/webhook-client.ts'
import { createShim, killProcess } from './disk-shim.ts'
import type { Trial } from './family.ts'
import type { Ledger } from './ledger.ts'
import { startLoad } from './load.ts'
import { copyHome, startServerAt, type Home } from './server.ts'

/** One call of the server to the disk that fails, counted from 1. 0: none does. */
export type DiskFault = { library: string; failAt: number; failErrno: number }

/** Starts a server on a copy of a home, with a fault of its disk. `server` is the reason if it does not start. */
export async function startWithFault(
  trial: Trial,
  from: Home,
  { library, failAt, failErrno }: DiskFault,
  name = String(failAt),
) {
  const folder = join(trial.folder, `attempt-${name}`)
  const home = copyHome(from, folder)
  const shim = createShim(library, folder, home.dataDir)
  shim.set('failErrno', failErrno)
  shim.set('failAt', failAt)
  const server = await startServerAt(home, shim.env()).catch((error: unknown) => String(error))
  return {
    home,
    server,
    isReached: () => shim.get('failedCall') !== 0,
    /** Ends the fault. @returns the calls that the server made */
    end(): number {
      const calls = shim.get('calls')
      shim.close()
      return calls
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** Runs a load until enough is acknowledged, it takes too long or the server ends. @returns whether it has ended */
export async function runLoad(
  server: RunningServer,
  needs: { apps: TestApp[]; ledger: Ledger; random: Trial['random']; connections: number },
  { acknowledged, ms }: { acknowledged: number; ms: number },
): Promise<() => boolean> {
  let ended = false
  const hasEnded = () => ended
  void server.exited.then(() => (ended = true))
  const load = startLoad({ url: server.url, ...needs })
  const deadline = performance.now() + ms
  const { count } = needs.ledger
  while (!hasEnded() && count.acknowledged < acknowledged && performance.now() < deadline) await Bun.sleep(5)
  await load.stop()
  return hasEnded
}

/** Spreads positions evenly over the calls, the first and the last included. */
export function spreadEvenly(calls: number, countMax: number): number[] {
  const count = Math.min(calls, countMax)
  return Array.from({ length: count }, (_, i) => 1 + Math.floor((i * (calls - 1)) / Math.max(1, count - 1)))
}

/**
 * Makes an attempt without a fault, and then one for each of some of its calls to the disk, before which the server is
 * killed.
 *
 * @returns all attempts, the one without a fault first
 */
export async function killBeforeCalls<A extends { calls: number; violations: string[] }>(
  library: string,
  count: number,
  attempt: (fault: DiskFault) => Promise<A>,
): Promise<{ attempts: A[]; calls: number; violations: string[] }> {
  const kill = (failAt: number) => attempt({ library, failAt, failErrno: killProcess })
  const first = await kill(0)
  const attempts = [first]
  const violations = [...first.violations]
  for (const position of spreadEvenly(first.calls, count)) {
    const next = await kill(position)
    attempts.push(next)
    violations.push(...next.violations.map((fault) => `call ${position}: ${fault}`))
  }
  return { attempts, calls: first.calls, violations }
}
