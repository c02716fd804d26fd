import { describe, expect, test } from 'bun:test'
import { localeTexts } from '../../../src/delivery/text/locales.ts'
import { renderMessage } from '../../../src/delivery/text/message.ts'
import { measureSms } from '../../../src/delivery/text/sms-segments.ts'
import { findCodes, createMessageInput } from '../message-input.ts'

const locales = Object.keys(localeTexts)
const domain = 'example.com'
const hash = 'FA+9qCX9VSu'

/**
 * "Parse an origin-bound one-time code message" (WICG, Origin-bound one-time codes delivered via SMS, §3.2),
 * step by step.
 */
function parseOriginBound(message: string) {
  const line = message.replaceAll(/\r\n?/g, '\n').split('\n').at(-1) ?? ''
  let position = 0
  const extractMarked = (marker: string) => {
    if (position >= line.length || line[position] !== marker) return null
    position++
    const token = /^[^\t\n\f\r ]*/.exec(line.slice(position))?.[0] ?? ''
    position += token.length
    return token === '' ? null : token
  }
  const host = extractMarked('@')
  if (host === null || line[position] !== ' ') return null
  position++
  const code = extractMarked('#')
  if (code === null) return null
  return { host, code, rest: line.slice(position) }
}

test('the parser refuses what the specification refuses', () => {
  expect(parseOriginBound('747723 is your code.\n\n@example.com #747723')).toMatchObject({ code: '747723' })
  expect(parseOriginBound('@example.com #747723 %ecommerce.example $future')).toMatchObject({ host: domain })
  expect(parseOriginBound('something @example.com #747723')).toBeNull()
  expect(parseOriginBound('#747723 @example.com')).toBeNull()
  expect(parseOriginBound('@example.com code #747723')).toBeNull()
  expect(parseOriginBound('@example.com #747723\n')).toBeNull()
})

describe.each(locales)('in %s', (locale) => {
  const render = (overrides: object) => renderMessage(createMessageInput({ locale, ...overrides })).text

  test('a browser reads the host and the code from the last line', () => {
    for (const androidAppHash of [null, hash]) {
      const text = render({ webOtpDomain: domain, androidAppHash })
      expect(parseOriginBound(text)).toEqual({ host: domain, code: '012345', rest: '' })
      expect(text.split('\n').at(-1)).toBe('@example.com #012345')
    }
  })

  test('an Android app gets the code before its hash, within 140 bytes', () => {
    const text = render({ androidAppHash: hash, applicationName: 'Northwind Trading Co', minutesLeft: 10 })
    const lines = text.split('\n')
    expect(lines.at(-1)).toBe(hash)
    expect(findCodes(lines.slice(0, -1).join('\n'))).toEqual(['012345'])
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(140)
    expect(measureSms(text).parts).toBe(1)
  })

  test('both fit one message, with the hash on its own line before the WebOTP line', () => {
    const text = render({ webOtpDomain: domain, androidAppHash: hash })
    expect(text.split('\n').slice(1)).toEqual([hash, '@example.com #012345'])
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(140)
    expect(measureSms(text).parts).toBe(1)
  })

  test('there are no machine-readable lines unless the application asks for them', () => {
    expect(parseOriginBound(render({}))).toBeNull()
    expect(render({}).split('\n')).toHaveLength(1)
  })
})

describe('a text that exceeds one part', () => {
  const spanish = { locale: 'es', applicationName: 'Northwind Trading Co' }

  test('loses the minutes first', () => {
    const message = renderMessage(createMessageInput({ ...spanish, webOtpDomain: domain }))
    expect(message.leftOut).toEqual(['minutes'])
    expect(message.text).toBe('012345 es tu código de Northwind Trading Co.\n@example.com #012345')
  })

  test('loses the name next', () => {
    const message = renderMessage(
      createMessageInput({ ...spanish, webOtpDomain: domain, androidAppHash: hash }),
    )
    expect(message.leftOut).toEqual(['minutes', 'name'])
    expect(message.text).toBe(`012345 es tu código de verificación.\n${hash}\n@example.com #012345`)
  })

  test('stays complete if nothing would fit', () => {
    const webOtpDomain = `${'sub.'.repeat(20)}example.com`
    const message = renderMessage(createMessageInput({ ...spanish, webOtpDomain }))
    expect(message.leftOut).toEqual([])
    expect(message.text).toContain('Northwind Trading Co. Expira en 5 minutos.')
    expect(parseOriginBound(message.text)?.host).toBe(webOtpDomain)
  })

  test('is shortened for an Android app beyond 140 bytes, even within 160 septets', () => {
    const english = {
      applicationName: 'Northwind Trading Company',
      webOtpDomain: 'accounts.login.northwind.example.org',
    }
    expect(renderMessage(createMessageInput(english)).leftOut).toEqual([])
    const message = renderMessage(createMessageInput({ ...english, androidAppHash: hash }))
    expect(message.leftOut).toEqual(['minutes'])
    expect(Buffer.byteLength(message.text)).toBeLessThanOrEqual(140)
  })

  test('is shortened if the name needs UCS-2', () => {
    const message = renderMessage(createMessageInput({ applicationName: 'Магазин у дома номер один' }))
    expect(message).toMatchObject({ locale: 'en', leftOut: ['minutes'] })
    expect(measureSms(message.text).parts).toBe(1)
  })
})
