import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchContext } from './bench-case.ts'
import { encodeRequest } from './load.ts'
import { cacheFolder, startServer } from './machine.ts'
import { call } from './otpd.ts'
import type { Service } from './service.ts'

const version = '1.7.7'
const folder = join(cacheFolder, `better-auth-${version}`)

/**
 * Installs better-auth into its own folder below `$XDG_CACHE_HOME` unless it is already installed.
 *
 * @returns the reason if the installation fails
 */
export function installBetterAuth(): string | undefined {
  const isInstalled = () => existsSync(join(folder, 'node_modules/better-auth/package.json'))
  if (!isInstalled()) {
    mkdirSync(folder, { recursive: true })
    const flags = ['--save-exact', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const command = ['npm', 'install', '--prefix', folder, ...flags, `better-auth@${version}`]
    Bun.spawnSync(command, { cwd: folder, stdout: 'ignore', stderr: 'ignore' })
  }
  return isInstalled() ? undefined : `better-auth ${version} could not be installed from the npm registry`
}

export async function startBetterAuth(context: BenchContext, favourable: boolean): Promise<Service> {
  // Imports resolve relative to the file that contains them.
  const script = join(folder, 'server.mjs')
  copyFileSync(join(import.meta.dir, 'servers/better-auth.mjs'), script)
  const command = [
    process.execPath,
    script,
    join(context.folder, 'better-auth.db'),
    ...(favourable ? ['favourable'] : []),
  ]
  const server = await startServer(command, { cwd: folder, env: context.env })
  const api = '/api/auth/phone-number'
  return {
    ...server,
    encodeSend: (_, phoneNumber) => encodeRequest(`${api}/send-otp`, {}, { phoneNumber }),
    encodeVerifies: async () => {
      const sent = await call<{ phone: string; code: string }[]>(`http://127.0.0.1:${server.port}/sent`)
      return sent.map(({ phone, code }) =>
        encodeRequest(`${api}/verify`, {}, { phoneNumber: phone, code, disableSession: true }),
      )
    },
  }
}
