import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchContext } from './bench-case.ts'
import { encodeRequest } from './load.ts'
import { cacheFolder, startServer } from './machine.ts'
import { call } from './otpd.ts'
import type { Service } from './service.ts'

const source = join(import.meta.dir, 'servers/pocketbase')
const binary = join(cacheFolder, 'pocketbase')
/** Accounts that the server creates. */
const users = 20_000

/** Builds PocketBase of the version in `go.mod`. @returns the reason if it cannot be built */
export function preparePocketBase(): string | undefined {
  const go = ['go', '/usr/local/go/bin/go'].find((command) => Bun.which(command) !== null)
  if (go === undefined) return 'Go is missing, which builds PocketBase: install Go 1.25 or later (go.dev/dl)'
  mkdirSync(cacheFolder, { recursive: true })
  const { success, stderr } = Bun.spawnSync([go, 'build', '-o', binary, '.'], {
    cwd: source,
    stdout: 'ignore',
  })
  return success && existsSync(binary) ? undefined : `go build: ${stderr.toString().trim()}`
}

/**
 * Starts PocketBase, whose one-time passwords go by e-mail. It has less to do than otpd: no application to authenticate,
 * no limits, no events. Passwords are hashed with bcrypt, and by default a power cut may take the last commits.
 */
export async function startPocketBase({ folder, env }: BenchContext): Promise<Service> {
  const server = await startServer([binary, 'serve', '--dir', join(folder, 'pocketbase')], { env })
  const api = '/api/collections/users'
  let next = 0
  return {
    ...server,
    encodeSend: () => encodeRequest(`${api}/request-otp`, {}, { email: `u${next++ % users}@example.com` }),
    encodeVerifies: async () => {
      const sent = await call<object[]>(`http://127.0.0.1:${server.port}/codes`)
      return sent.map((code) => encodeRequest(`${api}/auth-with-otp`, {}, code))
    },
  }
}
