import type { CommandCase, CommandContext } from './command-case.ts'

/** A call of each command on users, after a phone was verified. */
export const userCases: [string, (context: CommandContext) => CommandCase | Promise<CommandCase>][] = [
  ['user list', () => ({ args: [], stdout: /^PHONE .*COUNT +LAST.* +ID\n.*idn_/ })],
  ['user get', () => ({ args: ['+14155550100'], stdout: /^\+14155550100\n(.*\n)+ {2}Verifications +1\n/ })],
  [
    'user unlock',
    () => ({
      args: ['+14155550100'],
      stdout: /^(✓ Unlocked \+14155550100|\+14155550100 was not locked: no attempts were counted\.)\n$/,
    }),
  ],
  [
    'user erase',
    async ({ send }) => {
      await send('+14155550107')
      return {
        args: ['+14155550107', '--yes'],
        stdout: /^✓ Erased \+14155550107 from OTP requests \(1\), log entries \(\d\) and users \(0\)\n$/,
        stderr: /^Backups made earlier still contain it\./,
      }
    },
  ],
]
