import { expect, test } from 'bun:test'
import { chooseTemplateText } from '../../../src/delivery/text/locale-choice.ts'
import { createMessageRenderer } from '../../../src/delivery/text/message-renderer.ts'
import { measureTemplateText, previewTemplate } from '../../../src/delivery/text/template-lint.ts'
import { createPendingRequest } from '../../helpers/otp-request.ts'

const textsIn = (...locales: string[]) => locales.map((locale) => ({ locale, text: `${locale} {code}` }))
const choose = (locales: string[], locale: string | null, country: string | null = null) =>
  chooseTemplateText(textsIn(...locales), { locale, applicationDefaultLocale: null, country }).locale

test('the text is in the language that is asked for, else in English, else the first', () => {
  expect(choose(['de', 'en'], 'de-AT')).toBe('de')
  expect(choose(['de', 'en'], null, 'CH')).toBe('de')
  expect(choose(['de', 'en'], 'ja')).toBe('en')
  expect(choose(['de', 'en-GB'], 'ja')).toBe('en-GB')
  expect(choose(['fr', 'de'], 'ja')).toBe('fr')
  expect(choose(['fr', 'no'], 'nb-NO')).toBe('no')
})

const application = { name: 'Shop', defaultLocale: null, webOtpDomain: 'shop.example', androidAppHash: null }
const render = (template: { locale: string; text: string; payee: string }) =>
  createMessageRenderer({ nb: { sms: 'the text of the operator {code}' } }).render(
    createPendingRequest(0, {
      template: {
        name: 'payment',
        locale: template.locale,
        text: template.text,
        variables: { amount: '9 EUR', payee: template.payee },
      },
    }),
    '012345',
    application,
    0,
  )

test('the text of a request is shown even if its language has another name among the texts of the server', () => {
  const text = '{code}: {amount} til {payee}, {app}, {ttl} min'
  expect(render({ locale: 'no', text, payee: 'Ola' })).toBe(
    '012345: 9 EUR til Ola, Shop, 5 min\n@shop.example #012345',
  )
})

test('a payee of the other direction is isolated, so that it does not reorder amount and code', () => {
  const text = 'Pay {amount} to {payee}: {code}'
  expect(render({ locale: 'en', text, payee: 'عدا' })).toStartWith('Pay 9 EUR to \u2068عدا\u2069: 012345')
})

test('the size of a text is that of its longest message', () => {
  expect(measureTemplateText('en', '{code} {amount} {payee} {app} {ttl}')).toMatchObject({
    units: 6 + 24 + 40 + 20 + 2 + 4,
    parts: 1,
  })
  const sample = { amount: '9'.repeat(24), payee: 'n'.repeat(40) }
  const preview = previewTemplate(textsIn('en'), { locale: 'en' }, sample)
  expect(preview.text).toBe('en 123456')
})
