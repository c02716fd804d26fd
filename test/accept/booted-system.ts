import { appendFileSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './tools.ts'

/** Programs that a booted system needs on this machine. */
export const bootPrograms = ['mmdebstrap', 'systemd-nspawn']

/** Installs a small Debian with systemd into a new folder. */
export const installDebian = (folder: string, packages: readonly string[]) =>
  run('/', [
    'mmdebstrap',
    '--quiet',
    '--variant=minbase',
    `--include=${['systemd', 'systemd-sysv', 'dbus', 'procps', 'curl', 'ca-certificates', ...packages].join(',')}`,
    'trixie',
    folder,
  ])

/**
 * Boots a Debian, in which a script runs as root and switches it off at its end. Its folder is `/root`.
 *
 * @returns what the script printed; its commands are in `/root/commands.log`
 */
export async function boot(
  system: string,
  { script, sharesNetwork }: { script: string; sharesNetwork: boolean },
): Promise<string> {
  const units = join(system, 'etc/systemd/system')
  const service =
    '[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/bash /root/probe.sh\nStandardOutput=append:/root/probe.log\n'
  writeFileSync(join(units, 'probe.service'), service)
  mkdirSync(join(units, 'multi-user.target.wants'), { recursive: true })
  symlinkSync('../probe.service', join(units, 'multi-user.target.wants/probe.service'))
  copyFileSync(script, join(system, 'root/probe.sh'))
  appendFileSync(join(system, 'root/probe.log'), '')
  appendFileSync(join(system, 'root/commands.log'), '')
  // prettier-ignore
  const command = [
    'timeout', '300', 'systemd-nspawn', '--quiet', '--boot', `--directory=${system}`,
    '--register=no', '--keep-unit', ...(sharesNetwork ? [] : ['--private-network']),
  ]
  await Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).exited
  return readFileSync(join(system, 'root/probe.log'), 'utf8')
}

/** Compares the lines NAME=VALUE of a script with what they must be. @throws Error for a wrong or missing one */
export function checkFacts(
  system: string,
  log: string,
  expected: Record<string, RegExp>,
  print: (line: string) => void,
) {
  for (const [name, value] of Object.entries(expected)) {
    const [, found] = new RegExp(`^${name}=(.*)$`, 'm').exec(log) ?? []
    if (found === undefined || !value.test(found)) {
      const commands = readFileSync(join(system, 'root/commands.log'), 'utf8')
      throw new Error(`${name}: ${found ?? 'missing'} is not ${value}\n${log}\n${commands}`)
    }
    print(`${name}: ${found}`)
  }
}
