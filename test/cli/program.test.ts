import { expect, test } from 'bun:test'
import type { Command } from 'commander'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'

const treeFor = (firstWord?: string) => createProgram(processIo(), async () => {}, firstWord)

const shapeOf = (command: Command): unknown => [
  command.name(),
  command.aliases(),
  command.helpGroup(),
  command.commands.map(shapeOf),
]

const whole = treeFor()
const words = whole.commands.flatMap((command) => [command.name(), ...command.aliases()])

test.each(words)('otpd %s is the same command where it alone is made', (word) => {
  const named = (program: Command) =>
    program.commands.find((one) => [one.name(), ...one.aliases()].includes(word))
  const alone = named(treeFor(word))
  const among = named(whole)
  if (alone === undefined || among === undefined) throw new Error(`There is no ${word}`)
  expect(shapeOf(alone)).toEqual(shapeOf(among))
})

test('a word that no command begins with leaves the whole tree to suggest from, and so does completion', () => {
  expect(shapeOf(treeFor('projct'))).toEqual(shapeOf(whole))
  expect(shapeOf(treeFor('completion'))).toEqual(shapeOf(whole))
})

test('a command is made without the others', () => {
  const many = words.filter((word) => word !== 'completion')
  for (const word of many) expect(treeFor(word).commands.length).toBeLessThan(6)
})
