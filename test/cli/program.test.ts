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
