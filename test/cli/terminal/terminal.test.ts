import { expect, test } from 'bun:test'
import { typeKeys } from '../../../cli/terminal/terminal.ts'

test('a line ends with enter, and keeps what was typed ahead', () => {
  expect(typeKeys('', 'ada\rsecret')).toEqual({ text: 'ada', ended: 'entered', rest: 'secret' })
})

test('backspace takes one character, whatever it is made of', () => {
  expect(typeKeys('a😀', '\u007f').text).toBe('a')
  expect(typeKeys('', '\u007f').text).toBe('')
})

test('control-U clears, control-W takes a word', () => {
  expect(typeKeys('one two', '\u0015').text).toBe('')
  expect(typeKeys('one two ', '\u0017').text).toBe('one ')
})

test('control-C gives up, control-D only on an empty line', () => {
  expect(typeKeys('half', '\u0003').ended).toBe('given up')
  expect(typeKeys('', '\u0004').ended).toBe('given up')
  expect(typeKeys('half', '\u0004')).toMatchObject({ text: 'half', ended: 'no' })
})

test('arrow keys and their kind leave no letters behind', () => {
  expect(typeKeys('a', '\u001b[D\u001b[1;5C\u001bOHb').text).toBe('ab')
})
