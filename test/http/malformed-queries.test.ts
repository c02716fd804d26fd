import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { canary, createApiTester, type ApiTester } from '../helpers/api-tester.ts'
import type { Operation } from '../helpers/openapi.ts'

let apiTester: ApiTester

beforeAll(async () => void (apiTester = await createApiTester()))
afterAll(() => apiTester.service.dispose())

const listParameters = ({ parameters = [] }: Operation, place: 'query' | 'path') =>
  parameters.filter((parameter) => parameter.in === place).map(({ name }) => name)

const withQuery = () =>
  apiTester.operations.filter((operation) => listParameters(operation, 'query').length > 0)
const withPath = () =>
  apiTester.operations.filter((operation) => listParameters(operation, 'path').length > 0)
const lists = () => withQuery().filter((operation) => listParameters(operation, 'query').includes('cursor'))

/** Sends a query to each operation and returns all faults. */
async function sendTo(operations: Operation[], query: (operation: Operation) => string, status: number) {
  const faults: string[] = []
  for (const operation of operations) {
    const result = await apiTester.callAndCheck(operation, { query: query(operation) })
    faults.push(...result.faults)
    if (result.response.status !== status)
      faults.push(`${operation.operationId}: ${result.response.status} and not ${status}`)
  }
  return faults
}

test('the OpenAPI document has operations with a query or a path parameter', () => {
  expect(lists().length).toBeGreaterThanOrEqual(7)
  expect(withQuery().length).toBeGreaterThan(lists().length)
  expect(withPath().length).toBeGreaterThanOrEqual(12)
})

describe('every list', () => {
  test.each(['1', '50', '200'])('accepts limit=%s', async (limit) => {
    expect(await sendTo(lists(), () => `?limit=${limit}`, 200)).toEqual([])
  })

  test.each([
    '0',
    '201',
    '-1',
    '',
    '1e2',
    '%205',
    '5%20',
    '+5',
    '%2B5',
    '0x9',
    '05',
    '1.0',
    '1,2',
    '٣',
    'NaN',
    'null',
    '[]',
    '1%00',
    '%',
    '%zz',
    '%ff',
    '9'.repeat(400),
    canary,
    '5&limit=6',
    '5&%6cimit=6',
  ])('rejects limit=%s', async (limit) => {
    expect(await sendTo(lists(), () => `?limit=${limit}`, 400)).toEqual([])
  })

  test.each([
    'limit[]=5',
    'limit[a]=5',
    'Limit=5',
    'limit%00=5',
    '__proto__=5',
    'constructor=5',
    `%3C${canary}%3E=1`,
  ])('rejects the unknown parameter in ?%s', async (query) => {
    expect(await sendTo(withQuery(), () => `?${query}`, 400)).toEqual([])
  })

  test('rejects a cursor that it did not issue', async () => {
    for (const cursor of [
      'x',
      canary,
      '%00',
      '%zz',
      'a'.repeat(200),
      'a'.repeat(201),
      Buffer.from(`1:${canary}`).toString('base64url'),
      Buffer.from('2:prj_01h455vb4pex5vsknk084sn02q').toString('base64url'),
      Buffer.from("1:' or 1=1 --").toString('base64url'),
      Buffer.from('1:').toString('base64url'),
      `${Buffer.from('1:prj_01h455vb4pex5vsknk084sn02q').toString('base64url')}=`,
      Buffer.from('1:prj_01h455vb4pex5vsknk084sn02q').toString('base64url').slice(0, -3),
    ]) {
      expect({ cursor, faults: await sendTo(lists(), () => `?cursor=${cursor}`, 400) }).toEqual({
        cursor,
        faults: [],
      })
    }
  })
})

describe('every operation with a query', () => {
  test('rejects a repeated and an unknown parameter', async () => {
    const twice = (operation: Operation) => {
      const [name = ''] = listParameters(operation, 'query')
      return `?${name}=7d&${name}=7d`
    }
    expect(await sendTo(withQuery(), twice, 400)).toEqual([])
    expect(await sendTo(withQuery(), () => `?unknown=${canary}`, 400)).toEqual([])
  })

  test('rejects invalid escapes in every parameter', async () => {
    for (const bad of ['%', '%z', '%zz', '%ff', '%c3%28', '%ed%a0%80', '%00', `a%00${canary}`]) {
      for (const operation of withQuery()) {
        for (const name of listParameters(operation, 'query')) {
          expect({ bad, name, faults: await sendTo([operation], () => `?${name}=${bad}`, 400) }).toEqual({
            bad,
            name,
            faults: [],
          })
        }
      }
    }
  })

  test('responds 200 or 400 to an empty, long or hostile filter, or 404 to an id', async () => {
    const faults: string[] = []
    for (const operation of withQuery()) {
      for (const name of listParameters(operation, 'query')) {
        for (const value of [
          '',
          ' ',
          canary,
          canary.repeat(500),
          `%3Cscript%3E${canary}`,
          "'%20or%201=1%20--",
        ]) {
          const result = await apiTester.callAndCheck(operation, { query: `?${name}=${value}` })
          faults.push(...result.faults)
          const expected = name.endsWith('Id') ? [200, 400, 404] : [200, 400]
          if (!expected.includes(result.response.status)) faults.push(`${name}: ${result.response.status}`)
        }
      }
    }
    expect(faults).toEqual([])
  })

  test.each(['7', '7D', '30', '1d', '365d', '', '%207d', '7d%20', '30d,7d', canary])(
    'rejects range=%s',
    async (range) => {
      const ranged = withQuery().filter((operation) => listParameters(operation, 'query').includes('range'))
      expect(ranged).not.toEqual([])
      expect(await sendTo(ranged, () => `?range=${range}`, 400)).toEqual([])
    },
  )
})

describe('every operation with an id in its path', () => {
  const absent = '01h455vb4pex5vsknk084sn02q'

  test('responds 404 to a malformed id and to an id of another kind', async () => {
    const faults: string[] = []
    for (const operation of withPath()) {
      const body = operation.body && JSON.stringify(apiTester.validBody(operation, apiTester.owner))
      for (const id of [
        ...['prj', 'app', 'otp', 'whk', 'idn', 'req', 'dev', ''].map((prefix) => `${prefix}_${absent}`),
        `prj_${absent.toUpperCase()}`,
        `prj_8${absent.slice(1)}`,
        `prj_${absent}0`,
        `prj_${absent}%0A`,
        `prj_${absent}%00`,
        '0',
        '-1',
        'null',
        'undefined',
        '*',
        '%2A',
        ':id',
        '%20',
        '%25',
        '%2e%2e%2fprojects',
        '%2F',
        '%5C',
        '%',
        '%z',
        '%zz',
        '%ff',
        '%c3%28',
        '%00',
        `%00${canary}`,
        canary,
        canary.repeat(500),
        'constructor',
        '__proto__',
        "'%20or%201=1%20--",
        '%3Cscript%3E',
        '%E2%80%AE',
        '😀',
        '%F0%9F%98%80',
      ]) {
        const result = await apiTester.callAndCheck(operation, {
          path: apiTester.fillPathWith(operation, id),
          body,
        })
        faults.push(...result.faults.map((fault) => `${fault} (${id.slice(0, 40)})`))
        if (result.response.status !== 404)
          faults.push(`${operation.operationId}: ${result.response.status} and not 404 (${id.slice(0, 40)})`)
      }
    }
    expect(faults).toEqual([])
  })

  test('requires credentials before it checks the id', async () => {
    for (const operation of withPath()) {
      for (const id of ['x', '%', '%zz', '%00', `app_${absent}`]) {
        const path = apiTester.fillPathWith(operation, id)
        const { response } = await apiTester.callAndCheck(operation, { path, as: {} })
        expect({ id, of: operation.operationId, is: response.status }).toMatchObject({ is: 401 })
      }
    }
  })
})

test('lists that take no parameter reject every one', async () => {
  const ids = ['getGuard', 'listProviders', 'listRoutes', 'listTemplates']
  const operations = apiTester.operations.filter(({ operationId }) => ids.includes(operationId))
  expect(operations).toHaveLength(ids.length)
  expect(await sendTo(operations, () => `?country=${canary}`, 400)).toEqual([])
  expect(await sendTo(operations, () => '', 200)).toEqual([])
})
