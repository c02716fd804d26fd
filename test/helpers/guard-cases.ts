import type { CommandCase, CommandContext } from './command-case.ts'

/** The commands for routes, alerts and the guard: of the host, and of rules that allow and deny. */
export const guardCases: [string, (context: CommandContext) => CommandCase][] = [
  ['routes', () => ({ args: [], stdout: /^No codes from providers yet: |^COUNTRY / })],
  [
    'routes explain',
    ({ requestId }) => ({ args: [requestId], stdout: /^No provider was asked: /, json: 'own' }),
  ],
  [
    'alerts',
    () => ({
      args: [],
      stdout:
        'Nothing is wrong.\n\nSENT TO  KIND     FROM     STATE\nwebhook  webhook  warning  ● nothing waits\n',
      json: 'own',
    }),
  ],
  ['alerts test', () => ({ args: ['webhook'], stdout: '✓ webhook: sent\n', json: 'own' })],
  [
    'guard status',
    () => ({
      args: [],
      stdout: /^Mode enforce:(.*\n)+RULE +FLAGGED +BLOCKED +LIMIT/,
      isWide: true,
      stderr: /rules of the running server/,
      json: 'own',
    }),
  ],
  [
    'guard allow',
    () => ({
      args: ['+14155550123', '--for', '24h'],
      stdout: /^rul_\S+\n$/,
      stderr: /\+14155550123 allowed until/,
    }),
  ],
  ['guard deny', () => ({ args: ['+882'], stdout: /^rul_\S+\n$/, stderr: /prefix \+882 denied\n/ })],
  ['guard rules', () => ({ args: [], stdout: /^RULE +TARGET +VALUE .*\ndeny +prefix +\+882 / })],
  ['guard remove', () => ({ args: ['+882'], stdout: '✓ rule +882 removed\n' })],
]
