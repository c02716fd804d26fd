import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { canary, createApiTester, type ApiTester } from '../helpers/api-tester.ts'
import type { Operation } from '../helpers/openapi.ts'

let apiTester: ApiTester
/** Every operation with a JSON body, from the OpenAPI document: new operations are covered automatically. */
let bodyOperations: Operation[]

beforeAll(async () => {
  apiTester = await createApiTester()
  bodyOperations = apiTester.operations.filter(({ body }) => body !== undefined)
})
afterAll(() => apiTester.service.dispose())

const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth))

/** Values to try in every field. */
const unexpectedValues: Record<string, unknown> = {
  null: null,
  true: true,
  'a number': 7,
  'a large number': 1e300,
  'a negative number': -1,
  'a fraction': 1.5,
  'no text': '',
  spaces: '   ',
  text: canary,
  'long text': canary.repeat(1000),
  'a list': [canary],
  'an empty list': [],
  'a list of lists': [[canary]],
  'a list of null': [null],
  'an object': { [canary]: canary },
  'an empty object': {},
  'an object with toString': { toString: canary },
  'a list of one with toString': [{ toString: canary }],
  'an object with a line break': { [`${canary}\n`]: 7 },
  'an operator': { $gt: '' },
  'a deep list': nested(5000),
  'a script': `<script>${canary}</script>`,
  SQL: `'; drop table projects; -- ${canary}`,
  'a path': `../../../${canary}`,
  'an id of another kind': 'idn_01h455vb4pex5vsknk084sn02q',
}

/** Sends bodies to every operation and returns all faults. */
async function sendToAll(
  make: (operation: Operation) => Record<string, string | Uint8Array<ArrayBuffer>>,
  expected: (operation: Operation, body: string | Uint8Array<ArrayBuffer>) => number | undefined,
  headers: Record<string, string> = {},
): Promise<string[]> {
  const faults: string[] = []
  for (const operation of bodyOperations) {
    for (const [name, body] of Object.entries(make(operation))) {
      const result = await apiTester.callAndCheck(operation, { body, headers })
      faults.push(...result.faults.map((fault) => `${fault} (${name})`))
      const expectedStatus = expected(operation, body)
      if (expectedStatus !== undefined && result.response.status !== expectedStatus) {
        faults.push(`${operation.operationId}: ${result.response.status} and not ${expectedStatus} (${name})`)
      }
    }
  }
  return faults
}

/** 400 if the OpenAPI document does not allow the body. */
const documentedStatus = (operation: Operation, body: string | Uint8Array<ArrayBuffer>) =>
  apiTester.acceptsBody(operation, JSON.parse(String(body))) ? undefined : 400

test('the OpenAPI document has operations with a JSON body', () => {
  expect(bodyOperations.length).toBeGreaterThanOrEqual(12)
})

describe('every operation rejects', () => {
  test('a field of the wrong type or format', async () => {
    const faults = await sendToAll((operation) => {
      const completeBody = apiTester.validBody(operation, apiTester.owner)
      const variants = Object.keys(operation.body?.properties ?? {}).flatMap((field) =>
        Object.entries(unexpectedValues).map(([label, value]) => [
          `${field} is ${label}`,
          JSON.stringify({ ...completeBody, [field]: value }),
        ]),
      )
      return Object.fromEntries(variants)
    }, documentedStatus)
    expect(faults).toEqual([])
  })

  test('a missing or an unknown field', async () => {
    const faults = await sendToAll((operation) => {
      const completeBody = apiTester.validBody(operation, apiTester.owner)
      const bodiesWithoutField = Object.keys(completeBody).map((field) => {
        const { [field]: _, ...bodyRemainder } = completeBody
        return [`without ${field}`, JSON.stringify(bodyRemainder)]
      })
      const extra = [
        'id',
        'developerId',
        'constructor',
        'toString',
        '__proto__',
        `<${canary}>`,
        `+${canary}`,
        '',
      ].map((field) => [
        `with ${field}`,
        `{${JSON.stringify(field)}:"${canary}",${JSON.stringify(completeBody).slice(1)}`,
      ])
      return Object.fromEntries([...bodiesWithoutField, ...extra])
    }, documentedStatus)
    expect(faults).toEqual([])
  })

  test('an unknown field, and repeats its name only if it consists of words', async () => {
    const [send] = bodyOperations.filter(({ operationId }) => operationId === 'sendOtp')
    if (!send) throw new Error('The operation is gone.')
    const pathFor = async (name: string) => {
      const body = JSON.stringify({ phone: '+14155550100', [name]: 1 })
      const { response } = await apiTester.callAndCheck(send, { body })
      expect(response.status).toBe(400)
      const { error } = JSON.parse(response.text)
      return error.details[0].path
    }
    for (const name of ['phoneNumber', 'phone_number', 'phone-number', 'Phone'])
      expect(await pathFor(name)).toBe(name)
    for (const name of [
      '+14155550100',
      '14155550100',
      'st_abcDEFghijKLmnop',
      'rt_Abcdefghijklmnop',
      'whsec_0123abcd',
      'abcd-efgh-ijkl-mnop',
      'correct horse battery',
      '<b>',
      'a\nb',
      'a/b',
      'x'.repeat(33),
    ]) {
      expect(await pathFor(name)).toBe('')
    }
  })

  test('a body that is not a JSON object', async () => {
    const bodies = {
      'an empty body': '',
      null: 'null',
      'a list': '[]',
      'a number': '7',
      text: `"${canary}"`,
      'half an object': `{"${canary}":`,
      'two objects': '{}{}',
      'a comment': `{}//${canary}`,
      'single quotes': "{'name':'x'}",
      'a trailing comma': '{"name":"x",}',
      NaN: '{"name":NaN}',
      'a deep list': '['.repeat(5000),
      'a deep list to the end of the body': '['.repeat(65_000),
      'a NUL': '{"name":"\0"}',
      'not UTF-8': Uint8Array.from([...Buffer.from('{"name":"'), 0xff, 0xfe, ...Buffer.from('"}')]),
      'UTF-16': Uint8Array.from(Buffer.from('{"name":"x"}', 'utf16le')),
      'a form': `name=${canary}`,
      XML: `<name>${canary}</name>`,
    }
    const faults = await sendToAll(
      () => bodies,
      () => 400,
    )
    expect(faults).toEqual([])
  })

  test('a body that two parsers may read differently', async () => {
    const faults = await sendToAll(
      (operation) => {
        const bodyRemainder = JSON.stringify(apiTester.validBody(operation, apiTester.owner)).slice(1)
        const [field = ''] = Object.keys(operation.body?.properties ?? {})
        const escaped = `\\u${field.charCodeAt(0).toString(16).padStart(4, '0')}${field.slice(1)}`
        return {
          'a repeated property': `{"${field}":"${canary}",${bodyRemainder}`,
          'a repeated property, once escaped': `{"${escaped}":"${canary}",${bodyRemainder}`,
          'a repeated property in a nested object': `{"x":{"a":1,"a":2},${bodyRemainder}`,
          'a string with NUL': `{"${field}":"${canary}\\u0000"}`,
          'an unpaired high surrogate': `{"${field}":"${canary}\\ud83d"}`,
          'an unpaired low surrogate': `{"${field}":"\\udc00${canary}"}`,
          'a property name with an unpaired surrogate': `{"\\ud83d":1,${bodyRemainder}`,
        }
      },
      () => 400,
    )
    expect(faults).toEqual([])
  })

  test('an empty body and one after a byte order mark as malformed', async () => {
    const codes = new Set<string>()
    for (const operation of bodyOperations) {
      const text = JSON.stringify(apiTester.validBody(operation, apiTester.owner))
      for (const body of [undefined, '', `\ufeff${text}`]) {
        const { response, faults } = await apiTester.callAndCheck(operation, {
          body,
          headers: { 'content-type': 'application/json' },
        })
        expect(faults).toEqual([])
        codes.add(JSON.parse(response.text).error.code)
      }
    }
    expect([...codes]).toEqual(['MALFORMED_JSON'])
  })

  test('a body of more than 64 KiB', async () => {
    const faults = await sendToAll(
      () => ({ '64 KiB and a byte': JSON.stringify({ [canary]: 'x'.repeat(65_537 - 17) }) }),
      () => 413,
    )
    expect(faults).toEqual([])
  })

  test.each([
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json-patch+json',
    'application/jsonx',
    'application/json, text/plain',
    'application/json; charset=utf-16',
    'application/json; charset="latin1"',
    `x/${canary}`,
    '',
  ])('the media type %p', async (type) => {
    const faults = await sendToAll(
      (operation) => ({ body: JSON.stringify(apiTester.validBody(operation, apiTester.owner)) }),
      () => 415,
      { 'content-type': type },
    )
    expect(faults).toEqual([])
  })

  test.each(['gzip', 'br', 'deflate', 'identity, gzip', canary])('the content coding %p', async (coding) => {
    const faults = await sendToAll(
      (operation) => ({ body: JSON.stringify(apiTester.validBody(operation, apiTester.owner)) }),
      () => 415,
      { 'content-encoding': coding },
    )
    expect(faults).toEqual([])
  })

  test.each(['\n', '\r', '\t', '\u001b', '\u007f', '\u0085'])(
    'a name with %j, as documented',
    async (character) => {
      const documented: string[] = []
      const faults = await sendToAll(
        (operation) => {
          const completeBody = apiTester.validBody(operation, apiTester.owner)
          const fields = Object.entries(operation.body?.properties ?? {}).filter(
            ([field, { maxLength }]) => ['name', 'company'].includes(field) && maxLength !== undefined,
          )
          const bodies = fields.map(([field]) => ({ ...completeBody, [field]: `shop${character}admin` }))
          if (bodies.some((body) => apiTester.acceptsBody(operation, body)))
            documented.push(operation.operationId)
          return Object.fromEntries(bodies.map((body, index) => [fields[index]?.[0], JSON.stringify(body)]))
        },
        () => 400,
      )
      expect([faults, documented]).toEqual([[], []])
    },
  )
})

describe('every operation accepts', () => {
  test('texts of the maximum length, counted in code points', async () => {
    const faults = await sendToAll(
      (operation) => {
        const completeBody = apiTester.validBody(operation, apiTester.owner)
        const fields = Object.entries(operation.body?.properties ?? {})
        const variants = fields.flatMap(([field, { maxLength }]) =>
          maxLength === undefined || !['name', 'description', 'company'].includes(field)
            ? []
            : ['a', 'é', '漢', '😀'].flatMap((character) => [
                [`${field} full`, JSON.stringify({ ...completeBody, [field]: character.repeat(maxLength) })],
                [
                  `${field} over`,
                  JSON.stringify({ ...completeBody, [field]: character.repeat(maxLength + 1) }),
                ],
              ]),
        )
        return Object.fromEntries(variants)
      },
      (operation, body) => {
        if (!apiTester.acceptsBody(operation, JSON.parse(String(body)))) return 400
        return operation.method === 'POST' ? 201 : 200
      },
    )
    expect(faults).toEqual([])
  })

  test.each([
    'application/json',
    'Application/JSON',
    'application/json;charset=utf-8',
    'application/json ; Charset="UTF-8"',
    'application/json; v=1',
  ])('the media type %p', async (type) => {
    for (const operation of bodyOperations) {
      const body = JSON.stringify(apiTester.validBody(operation, apiTester.owner))
      const { response } = await apiTester.callAndCheck(operation, {
        body,
        headers: { 'content-type': type },
      })
      expect({ operation: operation.operationId, is: response.status }).not.toMatchObject({ is: 415 })
      expect(response.text).not.toContain('MALFORMED_JSON')
    }
  })

  // No coding at all (RFC 9110 §8.4.1).
  test.each(['identity', 'Identity', ''])('the content coding %j', async (coding) => {
    for (const operation of bodyOperations) {
      const body = JSON.stringify(apiTester.validBody(operation, apiTester.owner))
      const headers = { 'content-encoding': coding }
      const { response } = await apiTester.callAndCheck(operation, { body, headers })
      expect({ operation: operation.operationId, is: response.status }).not.toMatchObject({ is: 415 })
    }
  })

  test('a body surrounded by white space', async () => {
    const faults = await sendToAll(
      (operation) => {
        const body = JSON.stringify(apiTester.validBody(operation, apiTester.owner))
        return { spaces: ` \r\n\t${body}\n` }
      },
      (operation) => (operation.operationId === 'createProject' ? 201 : undefined),
    )
    expect(faults).toEqual([])
  })
})
