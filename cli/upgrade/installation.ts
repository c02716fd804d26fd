import { accessSync, constants, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CliError, exitCodes } from '../terminal/errors.ts'

/** An executable that no package manager owns, and where the one that it replaces is kept. */
export type Installation = { path: string; keptFolder: string }

/**
 * Finds the executable to replace.
 *
 * @param executable path of this program
 * @param ownCommand that runs this again
 * @throws CliError MANAGED_ELSEWHERE a package manager owns it; FILE_NOT_WRITABLE
 */
export function findInstallation(executable: string, ownCommand: string): Installation {
  const path = realpathSync(executable)
  const command = managerCommand(path)
  if (command !== undefined)
    throw new CliError(exitCodes.refused, 'MANAGED_ELSEWHERE', `${path} belongs to a package manager.`, {
      hints: [`Upgrade it there: ${command}`],
    })
  const folder = dirname(path)
  const keptFolder = basename(folder) === 'bin' ? join(dirname(folder), 'lib/otpd') : folder
  try {
    accessSync(folder, constants.W_OK)
  } catch {
    throw new CliError(exitCodes.refused, 'FILE_NOT_WRITABLE', `This user cannot write to ${folder}.`, {
      hints: [`Run it as the owner of the program: sudo ${ownCommand}`],
    })
  }
  return { path, keptFolder }
}

/** Returns the command that upgrades a program: that of its package manager, if one owns it, otherwise its own. */
export const upgradeCommand = (executable: string, ownCommand: string): string =>
  managerCommand(realpathSync(executable)) ?? ownCommand

/** Returns the command that upgrades a program of a package manager; undefined for any other. */
function managerCommand(path: string): string | undefined {
  const byPath: [RegExp, string][] = [
    [/\/node_modules\//, 'npm install otpd@latest (npm install --global, where it is installed so)'],
    [/\/(Cellar|homebrew)\//i, 'brew upgrade otpd'],
    [/^\/nix\/store\//, 'nix profile upgrade otpd'],
  ]
  const found = byPath.find(([pattern]) => pattern.test(path))
  if (found) return found[1]
  if (owns(['dpkg', '-S', path]))
    return 'apt-get install --only-upgrade otpd, or apt install ./FILE.deb of a release'
  if (owns(['rpm', '-qf', path])) return 'dnf upgrade otpd, or dnf install ./FILE.rpm of a release'
  if (owns(['apk', 'info', '--who-owns', path])) return 'apk upgrade otpd'
  return undefined
}

/** Asks a package manager whether it owns a file. One that is not installed owns none. */
const owns = (command: [string, ...string[]]): boolean =>
  Bun.which(command[0]) !== null &&
  Bun.spawnSync(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).success
