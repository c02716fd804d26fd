import { spawnSync } from 'node:child_process'

/** A unit of systemd that runs the program. */
type Service = { unit: string; restart(): string | null }

const unit = 'otpd.service'

/** Finds the active unit that runs a program: of the system as root, otherwise of the user. Undefined without one. */
export function findService(path: string): Service | undefined {
  const scope = process.getuid?.() === 0 ? [] : ['--user']
  const systemctl = (...args: string[]) => spawnSync('systemctl', [...scope, ...args], { encoding: 'utf8' })
  const { status, stdout } = systemctl('show', unit, '--property=ActiveState,ExecStart')
  const isActive = /^ActiveState=(active|reloading)$/m.test(stdout ?? '')
  if (status !== 0 || !isActive || !stdout.includes(`path=${path} `)) return undefined
  return {
    unit,
    /** @returns why it failed; null if the unit is started */
    restart() {
      const result = systemctl('restart', unit)
      return result.status === 0 ? null : result.stderr.trim()
    },
  }
}
