import type { Server } from './machine.ts'
import type { LoadSettings, Sample } from './service.ts'

export type BenchContext = {
  binary: string
  /** Empty at the start, and gone afterwards. */
  folder: string
  loadSettings: LoadSettings
  applications: number
  /** For the server that is measured. */
  env: Record<string, string>
}

/** Rows of the table that are made in one go, on a fresh server. */
export type BenchCase = {
  /** Names, and what they are called in the table. */
  rows: Readonly<Record<string, string>>
  /**
   * Called once, before all rounds.
   *
   * @param folder stays until the end of the run
   * @returns why the case must be left out
   */
  prepare?(folder: string): string | undefined
  /** @param isWanted rows that nobody wants may be left out */
  run(context: BenchContext, isWanted: (row: string) => boolean): Promise<Record<string, Sample>>
}

/** Stops the server whatever becomes of the work. */
export async function withServer<S extends Server, T>(server: S, run: (server: S) => Promise<T>): Promise<T> {
  try {
    return await run(server)
  } finally {
    await server.stop()
  }
}
