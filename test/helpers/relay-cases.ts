import type { CommandCase, CommandContext } from './command-case.ts'

const env = ['--env-file', 'web.env']

/** Cases for codes of another system, for proofs, and for the ready page. */
export const relayCases: [path: string, prepare: (context: CommandContext) => CommandCase][] = [
  [
    'otp prove',
    // Proofs that are accepted need a server in development mode: see proofs.test.ts.
    () => ({
      args: ['a.b.c', ...env],
      exitCode: 6,
      stderr:
        'Error: This server accepts no such proofs. Set projects of [proofs.firebase], or send a code.\n',
    }),
  ],
  [
    'otp test-proof',
    () => ({
      args: ['+14155550103', ...env],
      exitCode: 5,
      stderr: /^Error: Only a server in development mode issues test tokens\./,
    }),
  ],
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
  [
    'app page',
    () => ({
      args: ['web', '--on', '--return-origin', 'https://shop.example'],
      stdout: /^✓ Page updated\n {2}Page +● on\n {2}Returns to +https:\/\/shop\.example\n/,
      stderr: /Next: otpd otp session create --return-url URL --env-file FILE/,
    }),
  ],
  [
    'otp session create',
    () => ({
      args: ['--return-url', 'https://shop.example/back', ...env],
      stdout: /^ {2}Session +ses_\w+\n {2}Link +http:\S+\/verify\/[\w-]{43}\n {2}Expires /,
      stderr: /▄[^]*Next: otpd otp session get ses_\w+ --env-file web\.env/,
      savesAs: 'sessionId',
      isWide: true,
    }),
  ],
  [
    'otp session get',
    ({ sessionId }) => ({
      args: [sessionId, ...env],
      stdout: /^ {2}Session +ses_\w+\n {2}Status +created\n/,
    }),
  ],
]
