import { expect, test } from 'bun:test'
import type { Command } from 'commander'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'

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
