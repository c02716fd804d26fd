import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { startServer } from '../machine.ts'

/** Messages that clients of PostgreSQL sent. */
export type Traffic = {
  /** How often a client sent something after the server had answered. */
  roundTrips: number
  statements: number
  /** Transactions that began with a statement of their own. */
  transactions: number
}

export type DelayProxy = Awaited<ReturnType<typeof startDelayProxy>>

/** The reason why there is no delay proxy on this machine, if any. */
export const delayProxyLack =
  process.platform !== 'linux' ? 'it needs Linux' : Bun.which('gcc') === null ? 'gcc is missing' : undefined

/**
 * Compiles the proxy and starts it in front of a server on this machine.
 *
 * @param folder keeps the program and its counters while it runs
 */
export async function startDelayProxy(folder: string, targetPort: number) {
  const program = join(folder, 'delay-proxy')
  const source = join(import.meta.dir, '../servers/delay-proxy.c')
  const { success, stderr } = Bun.spawnSync(['gcc', '-O2', '-o', program, source])
  if (!success) throw new Error(`gcc: ${stderr.toString().trim()}`)
  const path = join(folder, 'delay-proxy.numbers')
  const { port, stop } = await startServer([program, String(targetPort), path], { core: null })
  const file = openSync(path, 'r+')

  return {
    port,
    /** @param ms added to a round trip, half of it in each direction */
    setDelay(ms: number): void {
      writeSync(file, new BigUint64Array([BigInt(Math.round((ms / 2) * 1e6))]), 0, 8, 0)
    },
    /** Returns what was sent since the start. */
    traffic(): Traffic {
      const numbers = new BigUint64Array(4)
      readSync(file, numbers, 0, 32, 0)
      const [, roundTrips, statements, transactions] = [...numbers].map(Number)
      return { roundTrips: roundTrips ?? 0, statements: statements ?? 0, transactions: transactions ?? 0 }
    },
    async stop(): Promise<void> {
      await stop()
      closeSync(file)
    },
  }
}
