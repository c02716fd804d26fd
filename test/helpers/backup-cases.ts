import type { CommandCase } from './command-case.ts'

/** A call of each command on backups and of `otpd upgrade`, in an order in which one follows from another. */
export const backupCases: [string, () => CommandCase][] = [
  [
    'backup',
    () => ({
      args: ['copy.db'],
      stdout: /^✓ Backup /,
      stderr: /master key is not in it/,
      json: 'own',
      hasSteps: true,
    }),
  ],
  ['backup list', () => ({ args: [], stdout: /^No backups in .*backups\.\n$/, json: 'own', isWide: true })],
  [
    'backup verify',
    () => ({
      args: ['copy.db'],
      stdout: /^✓ .*copy\.db is whole/,
      json: 'own',
      hasSteps: true,
      isWide: true,
    }),
  ],
  [
    'upgrade',
    () => ({
      args: ['--check', '--from', 'releases'],
      exitCode: 5,
      stderr: /There is no release in .*releases: latest is not there\./,
      json: 'own',
      isWide: true,
    }),
  ],
  [
    'restore',
    () => ({
      args: ['copy.db', '--data-dir', 'restored', '--yes'],
      stdout: /^✓ Restored /,
      stderr:
        /^ {2}Backup +\S+copy\.db\n {2}Made +.+ [KM]B\n {2}Contains +accounts \(\d+\),.*\n {2}Replaces +no database\nNext: otpd serve --data-dir restored\n$/,
      json: 'own',
      hasSteps: true,
    }),
  ],
]
