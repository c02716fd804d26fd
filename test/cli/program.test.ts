import { expect, test } from 'bun:test'
import type { Command } from 'commander'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { captureCommand } from '../helpers/run-command.ts'

const treeFor = (firstWord?: string) => createProgram(processIo(), async () => {}, firstWord)

const describeCommand = (command: Command): unknown => [
  command.name(),
  command.aliases(),
  command.helpGroup(),
  command.commands.map(describeCommand),
]

const fullTree = treeFor()
const commandNames = fullTree.commands.flatMap((command) => [command.name(), ...command.aliases()])

test.each(commandNames)('otpd %s is the same command when only its file is registered', (commandName) => {
  const findCommand = (program: Command) =>
    program.commands.find((one) => [one.name(), ...one.aliases()].includes(commandName))
  const ownCommand = findCommand(treeFor(commandName))
  const commandInFullTree = findCommand(fullTree)
  if (ownCommand === undefined || commandInFullTree === undefined)
    throw new Error(`There is no ${commandName}`)
  expect(describeCommand(ownCommand)).toEqual(describeCommand(commandInFullTree))
})

test('an unknown first word builds the whole tree, to suggest from, and so do completion and man', () => {
  expect(describeCommand(treeFor('projct'))).toEqual(describeCommand(fullTree))
  for (const word of ['completion', 'man'])
    expect(describeCommand(treeFor(word))).toEqual(describeCommand(fullTree))
})

test('a command is registered without the others', () => {
  const many = commandNames.filter((commandName) => !['completion', 'man'].includes(commandName))
  for (const commandName of many) expect(treeFor(commandName).commands.length).toBeLessThan(6)
})

/** Runs a command line in this process. */
async function run(...argv: string[]) {
  const { stdout, stderr, exitCode } = await captureCommand(argv, {
    ...processIo(),
    stdinIsTerminal: false,
    stdoutIsTerminal: false,
    env: {},
  })
  return { text: stdout + stderr, exitCode }
}

const actingGroups = ['alerts', 'audit', 'backup', 'routes']

test.each(actingGroups)(
  'otpd %s, which acts itself, shows both usages and its own examples alone',
  async (name) => {
    const { text } = await run(name, '--help')
    expect(text).toMatch(new RegExp(`Usage: otpd ${name} \\[options\\].*\n       otpd ${name} <command>\n`))
    expect(text.match(/^Examples:$/gm)).toHaveLength(1)
  },
)

test.each(['admin', 'otp session', 'profile totp'])(
  'the group %s shows examples and no help command',
  async (name) => {
    const { text } = await run(...name.split(' '), '--help')
    expect(text).toMatch(new RegExp(`\\n\\nExamples:\\n  .*otpd ${name} \\w`))
    expect(text).not.toMatch(/^ +help /m)
  },
)

test('a group that only has commands shows one usage', async () => {
  expect((await run('admin', '--help')).text).toContain('Usage: otpd admin <command>\n\n')
})

test.each([
  ['otp send +14155550100 --channel fax', '--channel: Expected one of sms, whatsapp, telegram, voice, rcs.'],
  ['app create web -p shop -e prod', '--env: Expected one of live, test.'],
  ['analytics nope', '<view>: Expected one of summary, timeseries, costs.'],
])('otpd %s names the flag or argument and its choices', async (line, message) => {
  const { text, exitCode } = await run(...line.split(' '))
  expect(text).toStartWith(`Error: ${message}\n  See: otpd `)
  expect(exitCode).toBe(2)
})

test('the help of every command has no line over 80 columns but examples, and colours as all output has', async () => {
  const walk = (command: Command, path: string[]): string[][] => [
    path,
    ...command.commands.flatMap((one) => walk(one, [...path, one.name()])),
  ]
  for (const path of walk(fullTree, [])) {
    const lines = (await run(...path, '--help')).text.split('\n')
    const examples = new Set(lines.filter((line) => /^ {2}\S/.test(line) && line.includes('otpd ')))
    expect([path, lines.filter((line) => line.length > 80 && !examples.has(line))]).toEqual([path, []])
  }
  const bold = async (env: Record<string, string>, ...flags: string[]) =>
    (await captureCommand(['app', '--help', ...flags], { ...processIo(), stdoutIsTerminal: true, env }))
      .stdout
  expect(await bold({ TERM: 'xterm' })).toContain('\u001b[1m')
  expect(await bold({ TERM: 'dumb' })).not.toContain('\u001b')
  expect(await bold({ TERM: 'xterm' }, '--no-color')).not.toContain('\u001b')
})

test('a group without a command prints its help, or an error in JSON', async () => {
  expect(await run('profile', 'totp')).toMatchObject({
    text: expect.stringContaining('Usage: otpd profile totp <command>'),
    exitCode: 2,
  })
  const { text, exitCode } = await run('profile', 'totp', '--json')
  expect([JSON.parse(text), exitCode]).toEqual([
    { error: { code: 'USAGE', message: 'Missing <command>.', hint: 'See: otpd profile totp --help' } },
    2,
  ])
})

test.each([
  [['user', 'get', ''], '<phone>: The value is empty.', 'otpd user get --help'],
  [['app', 'rotate', '', 'api-key'], '<app>: The value is empty.', 'otpd app rotate --help'],
  [
    ['webhook', 'deliveries', '', '--json'],
    '<webhook>: The value is empty.',
    'otpd webhook deliveries --help',
  ],
])('an empty argument of otpd %j is a usage error', async (argv, message, see) => {
  const { text, exitCode } = await run(...argv)
  expect(text).toContain(message)
  expect(text).toContain(see)
  expect(exitCode).toBe(2)
})

test.each([
  ['guard deny +882 --for soon', '--for: Expected a time like 30m, 24h or 7d, not "soon".'],
  ['token create ci --scope all', '--scope: Expected one or more of '],
  ['token create ci --scope read --expires 5', '--expires: Expected a lifetime like 12h or 30d, or never.'],
])('otpd %s names its flag, as other errors do', async (line, message) => {
  const { text, exitCode } = await run(...line.split(' '))
  expect(text).toStartWith(`Error: ${message}`)
  expect(exitCode).toBe(2)
})
