import type { Server } from './machine.ts'
import type { LoadSettings, Sample } from './service.ts'

export type BenchContext = {
  binary: string
  /** Empty folder, removed afterwards. */
  folder: string
  loadSettings: LoadSettings
  applications: number
  /** Environment of the measured server. */
  env: Record<string, string>
}

/** A case measures one or more rows of the table on a new server. */
export type BenchCase = {
  /** Titles in the table, by row name. */
  rows: Readonly<Record<string, string>>
  /**
   * Called once, before all rounds.
   *
   * @param folder remains until the end of the run
   * @returns the reason to skip the case, if any
   */
  prepare?(folder: string): string | undefined
  /** @param isWanted false for rows that may be skipped */
  run(context: BenchContext, isWanted: (row: string) => boolean): Promise<Record<string, Sample>>
}

/** Runs work on a server, and stops the server afterwards even if the work fails. */
export async function withServer<S extends Server, T>(server: S, run: (server: S) => Promise<T>): Promise<T> {
  try {
    return await run(server)
  } finally {
    await server.stop()
  }
}
