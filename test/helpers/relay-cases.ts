import type { CommandCase, CommandContext } from './command-case.ts'

const env = ['--env-file', 'web.env']

/** Cases for codes of another system. */
export const relayCases: [path: string, prepare: (context: CommandContext) => CommandCase][] = [
  [
    'otp deliver',
    () => ({
      args: ['+14155550103', '907155', ...env],
      stdout: /^✓ .* sent to \+14155550103.*\n {2}Message +msg_\w+\n$/,
      stderr: /Next: otpd otp outcome msg_\w+ verified --env-file web\.env/,
      savesAs: 'messageId',
    }),
  ],
  [
    'otp outcome',
    ({ messageId }) => ({
      args: [messageId, 'verified', ...env],
      stdout: '✓ Reported that +14155550103 was verified\n',
    }),
  ],
]
