import { afterAll, beforeAll, expect, test } from 'bun:test'
import { templatesMax } from '../../../src/domain/model/message-template.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

type Template = {
  name: string
  texts: Record<string, string>
  variables: string[]
  sizes: { locale: string; encoding: string; units: number; parts: number }[]
  createdAt: string
  updatedAt: string
}

describeEachDatabase('templates of an application', (database) => {
  let service: TestService
  let ada: TestDeveloper
  let app: TestApplication
  beforeAll(async () => {
    service = await createTestService({ database: database() })
    ada = await service.createDeveloper()
    app = await service.createApplication(ada)
  })
  afterAll(() => service.dispose())

  const path = (name: string, id = app.id) => `/v1/applications/${id}/templates/${name}`
  const put = (name: string, texts: unknown) =>
    service.request<Template>('PUT', path(name), { as: ada, body: { texts } })
  const get = (name: string) => service.request<Template>('GET', path(name), { as: ada })
  const list = () => service.request<Template[]>('GET', `/v1/applications/${app.id}/templates`, { as: ada })
  const faultOf = async (texts: unknown, name = 'faulty') => {
    const { status, error } = await put(name, texts)
    expect([status, error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    return error.message
  }

  test('are created, replaced, listed by name and deleted', async () => {
    const created = await put('login', { en: ' {code} is your {app} code. ', 'DE-at': 'Ihr Code: {code}' })
    expect(created.status).toBe(200)
    expect(created.data).toMatchObject({
      name: 'login',
      texts: { en: '{code} is your {app} code.', 'de-AT': 'Ihr Code: {code}' },
      variables: [],
      sizes: [
        { locale: 'en', encoding: 'GSM-7', units: 41, parts: 1 },
        { locale: 'de-AT', encoding: 'GSM-7', units: 16, parts: 1 },
      ],
    })
    service.clock.advance(1000)
    await put('action', { en: 'Confirm with {code}, valid for {ttl} min' })
    const replaced = await put('login', { fr: 'Votre code : {code}' })
    expect(replaced.data.createdAt).toBe(created.data.createdAt)
    expect(replaced.data.updatedAt > created.data.updatedAt).toBe(true)
    expect((await get('login')).data).toEqual(replaced.data)
    expect((await list()).data.map(({ name }) => name)).toEqual(['action', 'login'])
    const removed = await service.request('DELETE', path('action'), { as: ada })
    expect([removed.status, removed.data]).toEqual([200, { name: 'action', deleted: true }])
    expect((await get('action')).status).toBe(404)
    expect((await service.request('DELETE', path('action'), { as: ada })).status).toBe(404)
    const audit = await service.request<{ detail: string }[]>('GET', '/v1/audit', { as: ada })
    const details = audit.data.map(({ detail }) => detail)
    expect(details.slice(0, 2)).toEqual(['template action: deleted', 'template login: fr'])
  })

  test('a payment shows its amount and its payee in every language', async () => {
    const texts = { en: '{amount} to {payee}: {code}', de: '{code} für {amount} an {payee}' }
    const { data } = await put('payment', texts)
    expect(data.variables).toEqual(['amount', 'payee'])
    // With 24 characters of the amount, and 40 of the payee.
    expect(data.sizes).toMatchObject([{ units: 76 }, { units: 79 }])
    expect(await faultOf({ en: '{code}: pay {amount}' })).toContain(
      'texts.en: The placeholder {payee} is missing.',
    )
    expect(await faultOf({ ...texts, fr: 'Votre code : {code}' })).toContain(
      'texts.fr: Use the same variables in all texts: en differs from it.',
    )
  })

  test('are refused where they could deceive the reader, or nothing could be sent', async () => {
    const refused: [text: string, message: string][] = [
      ['Your code', 'The placeholder {code} is missing.'],
      ['{code} {cod}', 'There is no placeholder {cod}. Did you mean {code}?'],
      ['{code} {code}', '{code} is repeated.'],
      ['Code{code}', '{code} touches another letter'],
      ['{code}\t{app}', 'control character'],
      [`{code} ${'a'.repeat(480)}`, 'The template is too long.'],
      ['  ', 'not empty'],
      ['{code} at https://evil.example', 'link'],
      ['{code} at evil.example', 'link'],
      ['{code} {app}.com', 'link'],
      ['{code} bank.{app}', 'link'],
      ['{code}, call 0900 12 34', 'five or more digits'],
      ['{code}, call 0900\u200b12\u206034', 'five or more digits'],
      ['{code} at evil\u200b.example', 'link'],
      ['{code} \u202eevil', 'mark of direction'],
      ['{code} {', 'unmatched brace'],
    ]
    for (const [text, message] of refused) expect(await faultOf({ en: text })).toContain(message)
    expect(await faultOf({})).toContain('Expected 1 to 40 texts')
    for (const tag of ['english', 'xx', 'xx-YY'])
      expect(await faultOf({ [tag]: '{code} is it' })).toContain('Expected the tag of a language')
    expect(await faultOf({ en: '{code} a', EN: '{code} b' })).toContain('There are two texts for en.')
    expect(await faultOf({ en: 5 })).toContain('texts.en: Expected a string, not a number.')
    expect(await faultOf({ 'e\nn': null })).toContain('Expected a string, not null.')
    expect(await faultOf({ 'e\nn': '{code} ok' })).toContain('Expected the tag of a language')
    expect(await faultOf(['{code}'])).toContain('texts: Expected an object, not a list.')
    expect(await faultOf({ en: '{code} ok' }, 'With.Dot')).toContain('Expected a name of 1 to 32')
    for (const name of ['faulty', 'With.Dot', '%00']) {
      expect((await get(name)).status).toBe(404)
      expect((await service.request('DELETE', path(name), { as: ada })).status).toBe(404)
    }
  })

  test('have a limit to their number, below which all are kept', async () => {
    const other = await service.createApplication(ada)
    const putOther = (name: string) =>
      service.request('PUT', path(name, other.id), { as: ada, body: { texts: { en: '{code} is it' } } })
    for (let index = 0; index < templatesMax; index++) expect((await putOther(`t${index}`)).status).toBe(200)
    const refused = await putOther('one-more')
    expect([refused.status, refused.error.reason]).toEqual([409, 'TEMPLATE_LIMIT_REACHED'])
    expect((await putOther('t3')).status).toBe(200)
    expect((await service.request('DELETE', `/v1/applications/${other.id}`, { as: ada })).status).toBe(200)
  })
})
