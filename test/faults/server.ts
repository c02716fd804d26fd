import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { unlimitedPlan } from '../helpers/plans.ts'
import type { Trial } from './family.ts'

export const account = { email: 'ada@example.com', password: 'correct horse battery' }

export type Home = { home: string; dataDir: string; config: string; env: Record<string, string> }

/**
 * Creates a home with an account and no limits, which consecutive servers share.
 *
 * @param name name of the folder
 * @param rates limits of the plan
 */
export function makeHome({ folder }: Pick<Trial, 'folder'>, name: string, rates = {}): Home {
  const home = join(folder, name)
  mkdirSync(home, { recursive: true })
  const passwordFile = join(home, 'password')
  writeFileSync(passwordFile, account.password, { mode: 0o600 })
  const config = join(home, 'otpd.toml')
  const plan = { ...unlimitedPlan, ...rates }
  const lines = Object.entries(plan).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(config, `[plans.free]\n${lines.join('\n')}\n`)
  const env = {
    // The port changes with every start, but ID tokens name the public URL and must stay valid.
    OTPD_PUBLIC_URL: 'http://127.0.0.1',
    OTPD_ADMIN_EMAIL: account.email,
    OTPD_ADMIN_PASSWORD_FILE: passwordFile,
    OTPD_GUARD_MODE: 'off',
    OTPD_PHONE_SEND_BUDGET: 'off',
    OTPD_WEBHOOK_ALLOW: '127.0.0.1/32',
  }
  return { home, dataDir: join(home, 'data'), config, env }
}

/** Copies a home whose server is not running. @param folder does not exist yet */
export function copyHome(from: Home, folder: string): Home {
  cpSync(from.home, folder, { recursive: true })
  return { ...from, home: folder, dataDir: join(folder, 'data') }
}

/** Starts the binary in a home and waits until it is ready. @throws Error with its output if it exits first */
export const startServerAt = (serverHome: Home, env: Record<string, string> = {}): Promise<RunningServer> =>
  startServer({
    home: serverHome.home,
    dataDir: serverHome.dataDir,
    args: ['--config', serverHome.config],
    env: { ...serverHome.env, ...env },
  })
