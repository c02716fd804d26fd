import type { CommandCase, CommandContext } from './command-case.ts'

/** Cases for message texts: those of the server, and the templates of an application. */
export const templateCases: [path: string, prepare: (context: CommandContext) => CommandCase][] = [
  [
    'template set',
    () => ({
      args: ['payment', '--app', 'web', '--text', 'en=Pay {amount} to {payee} with {code}.'],
      stdout: /^✓ Template saved\n {2}Template +payment\n {2}Variables +amount, payee\n[^]*\nen +Pay /,
      stderr: /Next: otpd template preview --app web --template payment/,
    }),
  ],
  [
    'template list',
    () => ({ args: ['--app', 'web'], stdout: /^NAME +LANGUAGES.*\npayment +en +amount, payee +1 / }),
  ],
  [
    'template get',
    () => ({
      args: ['payment', '--app', 'web'],
      stdout: /^ {2}Template +payment\n[^]*\{payee\} with \{code\}/,
    }),
  ],
  ['template delete', () => ({ args: ['payment', '--app', 'web'], stdout: '✓ template payment deleted\n' })],
  ['template lint', () => ({ args: [], stdout: /^TEXT +LOCALE +SOURCE .*UCS-2\n/, json: 'own' })],
  [
    'template preview',
    () => ({
      args: [],
      stdout: /123456|\d{6}/,
      stderr: /^en, GSM-7, .* 1 part\.\nmain \(twilio\) writes its own text for whatsapp\.\n$/,
      json: 'own',
    }),
  ],
]
