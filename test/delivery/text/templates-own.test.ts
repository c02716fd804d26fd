import { describe, expect, test } from 'bun:test'
import { renderMessage } from '../../../src/delivery/text/message.ts'
import { requireConfig, loadFile, findOrigin, requireProblem } from '../../helpers/config.ts'
import { createMessageInput } from '../message-input.ts'

const template = (sms: string, locale = 'de') => `[templates.${locale}]\nsms = ${JSON.stringify(sms)}\n`

describe("an operator's own text", () => {
  const templates = { de: { sms: '{app}: {code} ({minutes} Min.)' }, sw: { sms: 'Nambari yako ni {code}' } }
  const textFor = (overrides: object) => renderMessage(createMessageInput(overrides), templates).text

  test('replaces the built-in one', () => {
    expect(textFor({ locale: 'de-AT' })).toBe('Acme: 012345 (5 Min.)')
    expect(textFor({ locale: 'en' })).toStartWith('012345 is your Acme')
  })

  test('adds a language', () => {
    expect(textFor({ locale: 'sw' })).toBe('Nambari yako ni 012345')
  })

  test('gets the machine-readable lines too', () => {
    expect(textFor({ locale: 'sw', webOtpDomain: 'a.example' })).toBe(
      'Nambari yako ni 012345\n@a.example #012345',
    )
  })

  test('works without a name', () => {
    const templateWithoutName = (sms: string) =>
      renderMessage(createMessageInput({ locale: 'de', applicationName: null }), { de: { sms } }).text
    expect(templateWithoutName('{app}: {code} ({minutes} Min.)')).toBe('012345 (5 Min.)')
    expect(templateWithoutName('Ihr Code bei {app}: {code}')).toBe('Ihr Code bei: 012345')
    expect(templateWithoutName('[{app}] {code}')).toBe('012345')
  })

  test('is not shortened if it exceeds one part', () => {
    const sms = `${'Lang '.repeat(40)}{code}`
    const message = renderMessage(createMessageInput({ locale: 'de' }), { de: { sms } })
    expect(message).toEqual({ locale: 'de', leftOut: [], text: `${'Lang '.repeat(40)}012345` })
  })
})

describe('the configuration of templates', () => {
  test('keeps texts by canonical language tag, with their line breaks', () => {
    const loaded = loadFile(template(' {code} ist Ihr Code. ') + template('{code}', 'zh-tw'))
    expect(requireConfig(loaded).templates).toEqual({
      de: { sms: '{code} ist Ihr Code.' },
      'zh-TW': { sms: '{code}' },
    })
    expect(findOrigin(loaded, 'templates.zh-TW.sms')).toBe('/etc/o.toml:4')
  })

  test.each([
    ['no code', template('Ihr Code'), 'Write {code}'],
    ['the code twice', template('{code} {code}'), 'Keep one'],
    ['the minutes twice', template('{code} {minutes} {minutes}'), 'Keep one'],
    ['a placeholder that is none', template('{code} {minute}'), 'Did you mean {minutes}?'],
    [
      'another placeholder that is none',
      template('{code} {user.name}'),
      'Use {code}, {minutes}, {ttl}, {app}',
    ],
    ['a lone brace', template('{code} {'), 'Braces hold placeholders only'],
    ['letters that touch the code', template('G{code}'), 'Put a space'],
    ['digits that touch the code', template('{code}0'), 'Put a space'],
    ['a placeholder that touches the code', template('{minutes}{code}'), 'Put a space'],
    ['a tab', template('{code}\t'), 'without tabs'],
    ['too long a text', template(`{code}${' a'.repeat(240)}`), 'Use at most 480'],
    ['nothing', template(' '), 'Put it in quotes'],
    ['a number', '[templates.de]\nsms = 5', 'Put it in quotes'],
    ['another key', '[templates.de]\nmms = "{code}"', 'It has sms'],
    ['a key below the text', '[templates.de.sms]\ntext = "{code}"', 'It has sms'],
    ['another way to write a tag', template('{code}', 'pt_BR'), 'Write pt-BR.'],
    ['a word that is no tag', template('{code}', 'german'), 'Write a tag such as'],
  ])('refuses %s and says where and what to do', (_, toml, remedy) => {
    const problem = requireProblem(loadFile(`# mine\n${toml}`))
    expect(problem.remedy).toContain(remedy)
    expect(problem.source).toMatch(/^\/etc\/o\.toml:[23]$/)
  })

  test('refuses a second text for the same language', () => {
    const problem = requireProblem(loadFile(template('{code}') + template('{code}', 'DE')))
    expect(problem).toMatchObject({ source: '/etc/o.toml:4', remedy: 'Keep one of the two.' })
  })

  test.each([
    ['a text instead of the tables', 'templates = "{code}"'],
    ['a text instead of a table', '[templates]\nde = "{code}"'],
  ])('refuses %s', (_, toml) => {
    expect(requireProblem(loadFile(toml)).remedy).toContain('[templates.LOCALE]')
  })

  test('allows the code next to letters of scripts without spaces', () => {
    expect(
      requireConfig(loadFile(template('您的验证码是{code}。', 'zh-CN'))).templates['zh-CN'],
    ).toBeDefined()
  })
})
