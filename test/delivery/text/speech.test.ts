import { describe, expect, test } from 'bun:test'
import { localeTexts } from '../../../src/delivery/text/locales.ts'
import { renderSpeech, renderPlainSpeech, speechText } from '../../../src/delivery/text/speech.ts'

const speechInput = { code: '482913', locale: 'en', applicationName: 'Acme' }
const voices = { en: 'Joanna', fr: 'Lea', 'pt-BR': 'Camila', 'zh-CN': 'Zhiyu' }

describe.each(Object.keys(localeTexts))('%s', (locale) => {
  const { text } = renderPlainSpeech({ ...speechInput, locale })

  test('says the code twice, digit by digit, and no other digits', () => {
    expect(text.match(/4, 8, 2, 9, 1, 3/g)).toHaveLength(2)
    expect(text.match(/\p{Nd}/gu)).toHaveLength(12)
    expect(text).toEndWith('4, 8, 2, 9, 1, 3.')
  })

  test('says the name of the application, and also works without one', () => {
    expect(text).toContain('Acme')
    const withoutName = renderPlainSpeech({ ...speechInput, locale, applicationName: '' }).text
    expect(withoutName.match(/4, 8, 2, 9, 1, 3/g)).toHaveLength(2)
    expect(withoutName).not.toMatch(/[{}]/)
  })

  test('has nothing that is only visible', () => {
    expect(text).not.toMatch(/[{}[\]【】\n@#\u2066-\u2069]/)
  })
})

test('speech is the sentence of the locale, then the code again', () => {
  expect(renderPlainSpeech(speechInput)).toEqual({
    text: '4, 8, 2, 9, 1, 3 is your Acme verification code. 4, 8, 2, 9, 1, 3.',
    locale: 'en',
  })
})

test.each([
  ['en', 'Joanna', 'en'],
  ['fr', 'Lea', 'fr'],
  ['fr-CA', 'Lea', 'fr'],
  ['pt', 'Camila', 'pt-BR'],
  ['de', 'Joanna', 'en'],
  ['zh-TW', 'Joanna', 'en'],
  ['not a locale', 'Joanna', 'en'],
])('%s is read by %s, in %s', (locale, voice, language) => {
  const spoken = renderSpeech({ ...speechInput, locale }, voices)
  expect(spoken).toMatchObject({ voice, locale: language })
  expect(spoken.sentence).toBe(renderSpeech({ ...speechInput, locale: language }, voices).sentence)
})

test('a name cannot contain another code, and its punctuation is not spoken', () => {
  const speakSentence = (applicationName: string) =>
    renderSpeech({ ...speechInput, applicationName }, voices).sentence
  expect(speakSentence('Acme 123456')).toBe('4, 8, 2, 9, 1, 3 is your Acme verification code')
  expect(speakSentence('<break time="9s"/>')).not.toMatch(/[<>"/]/)
  expect(speakSentence('{code}')).toContain('your code verification')
  expect(speechText(renderSpeech({ ...speechInput, applicationName: 'Salt & Co' }, voices))).toContain(
    'your Salt Co ver',
  )
})
