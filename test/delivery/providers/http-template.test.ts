import { afterEach, describe, expect, test } from 'bun:test'
import { httpTemplate } from '../../../src/delivery/providers/http-template.ts'
import { findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { startProviderApi, trickyText, type ProviderApi } from '../../helpers/provider-api.ts'
import { describeHttpFaults } from '../../helpers/provider-faults.ts'
import { makeProvider } from '../../helpers/provider-server.ts'

let api: ProviderApi
const start = (settings: Record<string, string> = {}) =>
  (api = startProviderApi(httpTemplate, (origin) => ({
    url: `${origin}/send`,
    body: '{{text}}',
    ...settings,
  })))
afterEach(() => api.stop())

describe('the gateway receives', () => {
  test('JSON with intact strings, whatever they contain', async () => {
    start({
      body: '{"to": "{{to}}", "sms": {"text": "{{text}}", "ttl": {{validitySeconds}}}, "ref": "{{requestId}}"}',
    })
    api.setResponse(200)
    expect(await api.send()).toEqual({ kind: 'accepted', messageId: null })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, path }).toEqual({ method: 'POST', path: '/send' })
    expect(headers['content-type']).toBe('application/json')
    expect(JSON.parse(body)).toEqual({
      to: '+31612345678',
      sms: { text: trickyText, ttl: 300 },
      ref: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    })
  })

  test('a form', async () => {
    start({ bodyType: 'form', body: 'to={{digits}}&text={{text}}&app={{applicationName}}&c={{country}}' })
    await api.send({ applicationName: 'a=b&c', country: null })
    const { headers, body } = api.takeCall()
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect([...new URLSearchParams(body)]).toEqual([
      ['to', '31612345678'],
      ['text', trickyText],
      ['app', 'a=b&c'],
      ['c', ''],
    ])
  })

  test('XML', async () => {
    start({ bodyType: 'xml', body: '<sms to="{{to}}">{{text}}</sms>' })
    await api.send({ text: `<b> & "it's"` })
    const { headers, body } = api.takeCall()
    expect(headers['content-type']).toBe('text/xml; charset=utf-8')
    expect(body).toBe('<sms to="+31612345678">&#60;b&#62; &#38; &#34;it&#39;s&#34;</sms>')
  })

  test('plain text by PUT', async () => {
    start({ method: 'PUT', bodyType: 'text', body: '{{code}}\n{{text}}' })
    await api.send()
    expect(api.takeCall()).toMatchObject({ method: 'PUT', body: `482913\n${trickyText}` })
  })

  test('a query that values cannot break out of, and no body', async () => {
    api = startProviderApi(httpTemplate, (origin) => ({
      url: `${origin}/{{channel}}/send?u={{username}}&p={{password}}&to={{to}}&text={{text}}&min={{validityMinutes}}`,
      method: 'GET',
      body: 'never',
      username: 'otpd',
      password: 'a&b c#{{text}}',
    }))
    await api.send({ validitySeconds: 299 })
    const { method, path, headers, body } = api.takeCall()
    expect({ method, body }).toEqual({ method: 'GET', body: '' })
    expect(headers).not.toHaveProperty('content-type')
    const url = new URL(path, 'http://localhost')
    expect(url.pathname).toBe('/sms/send')
    expect([...url.searchParams]).toEqual([
      ['u', 'otpd'],
      ['p', 'a&b c#{{text}}'],
      ['to', '+31612345678'],
      ['text', trickyText],
      ['min', '4'],
    ])
  })

  test('headers, with credentials from separate settings', async () => {
    start({
      headers:
        'Authorization: {{basic}}\nX-Request: {{requestId}}-{{attempt}}\ncontent-type: application/vnd.sms+json\n',
      username: 'otpd',
      password: 'pass:word',
      body: '"{{code}}"',
    })
    await api.send()
    const { headers } = api.takeCall()
    expect(headers['authorization']).toBe(`Basic ${Buffer.from('otpd:pass:word').toString('base64')}`)
    expect(headers['x-request']).toBe('otp_01jd3m2k5xe8r9s0t1v2w3x4y5-1')
    expect(headers['content-type']).toBe('application/vnd.sms+json')
  })

  test('a different value for texts outside the GSM alphabet', async () => {
    start({ bodyType: 'form', body: 'code={{code}}&coding={{gsm?0:2}}{{gsm?:&unicode=1}}' })
    await api.send({ text: 'Your code is 482913 €' })
    expect(api.takeCall().body).toBe('code=482913&coding=0')
    await api.send({ text: 'Ваш код 482913' })
    expect(api.takeCall().body).toBe('code=482913&coding=2&unicode=1')
  })

  test('a text that looks like a placeholder, unchanged', async () => {
    start({ bodyType: 'text', body: '{{text}}', password: 'secret' })
    await api.send({ text: '{{password}}' })
    expect(api.takeCall().body).toBe('{{password}}')
  })
})

describe('a response', () => {
  const sendWithResponse = async (settings: Record<string, string>, status: number, body: unknown) => {
    start(settings)
    api.setResponse(status, body)
    return api.send()
  }
  const accepted = 'accepted'
  const refused = 'refused'

  test.each([
    ['2xx', 202, accepted],
    ['200, 202', 202, accepted],
    ['200', 202, refused],
    ['2xx, 302', 302, accepted],
  ])('is read by the success status %s: %i is %s', async (successStatus, status, expected) => {
    expect(await sendWithResponse({ successStatus }, status, '')).toMatchObject({ kind: expected })
  })

  test('must contain the success text', async () => {
    expect(await sendWithResponse({ successText: '0: Accepted' }, 200, '0: Accepted for delivery')).toEqual({
      kind: accepted,
      messageId: null,
    })
    await api.stop()
    expect(await sendWithResponse({ successText: '0: Accepted' }, 200, 'ERR 17')).toMatchObject({
      kind: 'refused',
      failure: { class: 'unknown', providerCode: 'HTTP 200' },
    })
  })

  test.each([
    ['messages.0.status = 0', { messages: [{ status: '0' }] }, accepted],
    ['messages.0.status = 0', { messages: [{ status: 0 }] }, accepted],
    ['messages.0.status = 0', { messages: [{ status: 4 }] }, refused],
    ['messages.0.status = 0', 'no JSON', refused],
    ['state = queued | sent', { state: 'sent' }, accepted],
    ['ok=true', { ok: true }, accepted],
    ['ok=true', { ok: false }, refused],
    ['error=null', { error: null }, refused],
    ['note = a=b', { note: 'a=b' }, accepted],
  ])('is read by the success value %s: %j is %s', async (successValue, body, expected) => {
    expect(await sendWithResponse({ successValue }, 200, body)).toMatchObject({ kind: expected })
  })

  test('contains the id of the message', async () => {
    const settings = { messageIdPath: 'messages.0.id' }
    expect(await sendWithResponse(settings, 200, { messages: [{ id: 12345 }] })).toEqual({
      kind: 'accepted',
      messageId: '12345',
    })
    api.setResponse(200, { messages: [] })
    expect(await api.send()).toEqual({ kind: accepted, messageId: null })
  })

  const refusals =
    'unknown subscriber = invalid_number\n  STOP=opted_out\nlow balance =no_credit \na=b = geo_blocked'
  test.each([
    [400, 'ERR: unknown subscriber', 'invalid_number', 'number'],
    [200, '{"error": "STOP"}', 'opted_out', 'number'],
    [403, 'low balance', 'no_credit', 'account'],
    [400, 'a=b', 'geo_blocked', 'route'],
    [400, 'something else', 'unknown', 'route'],
    [403, 'something else', 'auth_failed', 'account'],
    [500, 'something else', 'provider_down', 'route'],
  ])('%i with %s has the failure class %s', async (status, body, failureClass, at) => {
    expect(await sendWithResponse({ refusals, successText: 'OK' }, status, body)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, at, providerCode: `HTTP ${status}` },
    })
  })

  test('is kept without the code, the phone and credentials, in any encoding', async () => {
    start({
      username: 'acme',
      password: 's3cret pass',
      headers: 'X-Key: 7f9a1c2b3d4e',
      successText: 'OK',
    })
    const said = 'ERR 17: no route to +31 6 12345678 (31612345678, 0612345678) for acme/s3cret%20pass '
    const more = `key 7f9a1c2b3d4e\r\n"code": "4-8 2,9 1 3" <b>${'x'.repeat(30)}</b> `
    api.setResponse(200, said + more + JSON.stringify(trickyText) + 'and so on '.repeat(100))
    const outcome = await api.send()
    const reply = outcome.kind === 'refused' ? (outcome.failure.reply ?? '') : ''
    expect(reply).toStartWith(
      'ERR 17: no route to [hidden] ([hidden], [hidden]) for [hidden]/[hidden] key [hidden] ',
    )
    expect(reply).toHaveLength(200)
    expect(reply).not.toMatch(/482913|612345678|acme|s3cret|7f9a|xxx|\n/)
    api.setResponse(500, ' ')
    expect(await api.send()).toMatchObject({ failure: { reply: null } })
  })

  test('contains the delay that the gateway asks for', async () => {
    start()
    api.setResponse(429, '', { 'retry-after': '3' })
    expect(await api.send()).toMatchObject({ failure: { class: 'throttled', retryAfterSeconds: 3 } })
  })
})

describe('invalid settings', () => {
  const url = 'https://sms.example.com/send'

  test.each([
    ['url', { url: 'https://sms.example.com/?to={{phone}}' }],
    ['url', { url: 'https://{{username}}.example.com/' }],
    ['url', { url: 'http://sms.example.com/?to={{to}}' }],
    ['url', { url: 'https://sms.example.com/?text={{text}}#{{code}}' }],
    ['body', { url, body: '{{txt}}' }],
    ['body', { url, body: '{{gsm?0}}' }],
    ['body', { url, body: 'ends in {{text' }],
    ['headers', { url, headers: 'no header' }],
    ['headers', { url, headers: 'X-Text: {{text}}' }],
    ['successStatus', { url, successStatus: '2x' }],
    ['successValue', { url, successValue: 'ok' }],
    ['refusals', { url, refusals: 'ERR = whatever' }],
    ['method', { url, method: 'DELETE' }],
    ['channels', { url, channels: 'fax' }],
  ])('%s of %j', (name, values) => {
    start()
    expect(findSettingFaults(httpTemplate, values)).toMatchObject([{ name }])
  })
})

describeHttpFaults(
  (baseUrl) => makeProvider(httpTemplate, { url: `${baseUrl}/?to={{to}}`, body: '"{{text}}"' }),
  { statusSuffices: true },
)

test('a template that leaves out the code is refused, as one with single braces', () => {
  const find = (values: Record<string, string>) =>
    findSettingFaults(httpTemplate, { url: 'https://sms.example/send', ...values })
  const [fault] = find({ body: '{"to": "{to}", "text": "{text}"}' })
  expect(fault).toMatchObject({ name: 'body', fault: 'has neither {{text}} nor {{code}}' })
  // A GET has no body.
  expect(find({ body: '{{code}}', method: 'GET' })).toMatchObject([{ name: 'url' }])
  expect(find({ url: 'https://sms.example/{{code}}', method: 'GET' })).toEqual([])
})

test('a template without the text leaves it out, so that its messages cannot show a payment', () => {
  const leavesOutText = (settings: Record<string, string>) =>
    makeProvider(httpTemplate, { url: 'https://sms.example/send', ...settings }).leavesOutText
  expect(leavesOutText({ body: '{"code": "{{code}}"}' })).toBe(true)
  expect(leavesOutText({ body: '{"text": "{{text}}"}' })).toBe(false)
  expect(leavesOutText({ url: 'https://sms.example/send?text={{text}}', method: 'GET' })).toBe(false)
  const withUnsentBody = { url: 'https://sms.example/{{code}}', body: '{{text}}', method: 'GET' }
  expect(leavesOutText(withUnsentBody)).toBe(true)
})
