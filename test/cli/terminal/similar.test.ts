import { expect, test } from 'bun:test'
import { similarWords } from '../../../cli/terminal/similar.ts'

const words = ['send', 'resend', 'verify', 'list', 'create', 'ls']

test.each([
  ['sned', ['send']],
  ['snd', ['send']],
  ['verfy', ['verify']],
  ['creat', ['create']],
  ['rsned', ['resend']],
  ['li', ['list']],
  ['re', ['resend']],
  ['l', []],
  ['lt', []],
  ['foo', []],
  ['xx', []],
])('%s is meant to be %p', (typed, expected) => {
  expect(similarWords(typed, words)).toEqual(expected)
})
