import { expect, test } from 'bun:test'
import { applyKeys } from '../../../cli/terminal/terminal.ts'

test('a line ends with enter, and keeps what was typed ahead', () => {
  expect(applyKeys('', 'ada\rsecret')).toEqual({ text: 'ada', outcome: 'entered', unread: 'secret' })
})

test('backspace removes one character, even of several bytes', () => {
  expect(applyKeys('a😀', '\u007f').text).toBe('a')
  expect(applyKeys('', '\u007f').text).toBe('')
})

test('control-U clears the line, control-W removes a word', () => {
  expect(applyKeys('one two', '\u0015').text).toBe('')
  expect(applyKeys('one two ', '\u0017').text).toBe('one ')
})

test('control-C cancels, control-D only on an empty line', () => {
  expect(applyKeys('half', '\u0003').outcome).toBe('canceled')
  expect(applyKeys('', '\u0004').outcome).toBe('canceled')
  expect(applyKeys('half', '\u0004')).toMatchObject({ text: 'half', outcome: 'typing' })
})

test('arrow and function keys leave no characters', () => {
  expect(applyKeys('a', '\u001b[D\u001b[1;5C\u001bOHb').text).toBe('ab')
})
