import { Database } from 'bun:sqlite'
import { join } from 'node:path'

const open = (dataDir: string) => new Database(join(dataDir, 'otpd.db'))

/** Holds the lock of writers. @returns releases it */
export function lockDatabase(dataDir: string): () => void {
  const database = open(dataDir)
  database.run('begin immediate')
  return () => {
    database.run('rollback')
    database.close()
  }
}

/** Makes the phone of every OTP request unreadable. */
export function breakRequests(dataDir: string) {
  using database = open(dataDir)
  database.run(`update otp_requests set phone = 'p1.AAAAAAAAAAAAAAAAAAAAAAAAAAAA'`)
}
