import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { nonexistentIds, createApiTester, type Tenant, type ApiTester } from '../helpers/api-tester.ts'
import {
  createTenantIsolationChecker,
  isForApplications,
  type TenantIsolationChecker,
} from '../helpers/tenant-isolation.ts'

let apiTester: ApiTester
let checker: TenantIsolationChecker
let ada: Tenant
let eve: Tenant
/** Headers of Ada's second application. */
let sibling: Record<string, string>
let before: string[]

/** Reads every resource of Ada that has an id. @returns the bodies of the responses */
async function readAll(): Promise<string[]> {
  const texts: string[] = []
  for (const operation of checker.operationsWithIds.filter(({ method }) => method === 'GET')) {
    const { response, faults } = await apiTester.callAndCheck(operation)
    const { status, text } = response
    expect({ of: operation.operationId, status, faults }).toMatchObject({ status: 200, faults: [] })
    texts.push(`${operation.operationId} ${text}`)
  }
  return texts
}

beforeAll(async () => {
  apiTester = await createApiTester()
  checker = createTenantIsolationChecker(apiTester)
  ada = apiTester.owner
  eve = await apiTester.createTenant('+14155550101')
  sibling = (await apiTester.service.createApplication(ada.developer, { environment: 'test' })).headers
  before = await readAll()
})
afterAll(() => apiTester.service.dispose())

test('the OpenAPI document has operations for developers and for applications', () => {
  expect(checker.forConsole.length).toBeGreaterThanOrEqual(16)
  expect(checker.forApplications.length).toBeGreaterThanOrEqual(4)
  expect(apiTester.operations.filter(isForApplications).length).toBeGreaterThanOrEqual(6)
})

describe('a resource of another developer', () => {
  test('is indistinguishable from an absent one, in every operation', async () => {
    for (const operation of checker.forConsole) {
      const { foreign, absent } = await checker.compare(operation, eve.developer.headers, ada)
      expect({ of: operation.operationId, ...foreign }).toEqual({ of: operation.operationId, ...absent })
      expect(foreign.status).toBe(404)
    }
  })

  test('is indistinguishable from an absent one for other applications, even of the same developer', async () => {
    for (const operation of checker.forApplications) {
      for (const as of [eve.application.headers, sibling]) {
        const { foreign, absent } = await checker.compare(operation, as, ada)
        expect({ of: operation.operationId, ...foreign }).toEqual({ of: operation.operationId, ...absent })
        expect(foreign.status).toBe(404)
      }
    }
  })

  test('is indistinguishable from an absent one for a lookup with an API key', async () => {
    const [lookup] = apiTester.operations.filter(({ operationId }) => operationId === 'getUser')
    if (!lookup) throw new Error('The lookup is gone.')
    const { foreign, absent } = await checker.compare(lookup, { 'x-api-key': eve.application.apiKey }, ada)
    expect(foreign).toEqual(absent)
    expect(foreign.status).toBe(404)
    const own = await apiTester.callAndCheck(lookup, { as: { 'x-api-key': ada.application.apiKey } })
    expect([own.response.status, own.faults]).toEqual([200, []])
  })

  test('is not found by the filter of a list, as an absent one', async () => {
    const pairs: Array<[string, string, string]> = [
      ['projectId', ada.application.projectId, nonexistentIds.projectId],
      ['appId', ada.application.id, nonexistentIds.appId],
    ]
    let tried = 0
    for (const operation of apiTester.operations) {
      for (const [name, foreignId, absentId] of pairs) {
        if (!operation.parameters?.some((parameter) => parameter.in === 'query' && parameter.name === name))
          continue
        tried += 1
        const as = eve.developer.headers
        const foreign = await checker.callAsCaller(operation, { as, query: `?${name}=${foreignId}` })
        const absent = await checker.callAsCaller(operation, { as, query: `?${name}=${absentId}` })
        expect({ of: operation.operationId, ...foreign }).toEqual({ of: operation.operationId, ...absent })
        expect(foreign.status).toBe(404)
        if (operation.operationId === 'streamLogs') continue
        const own = await checker.callAsCaller(operation, {
          as: ada.developer.headers,
          query: `?${name}=${foreignId}`,
        })
        expect(own.status).toBe(200)
      }
    }
    expect(tried).toBeGreaterThanOrEqual(6)
  })

  test('cannot be used as a position in the log', async () => {
    const [logs] = apiTester.operations.filter(({ operationId }) => operationId === 'listLogs')
    if (!logs) throw new Error('The log is gone.')
    const entries = JSON.parse((await checker.callAsCaller(logs, { as: ada.developer.headers })).body).data
    const as = eve.developer.headers
    const foreign = await checker.callAsCaller(logs, { as, query: `?after=${entries[0].id}` })
    expect(foreign).toEqual(
      await checker.callAsCaller(logs, { as, query: `?after=${nonexistentIds.eventId}` }),
    )
    expect(foreign.status).toBe(400)
  })

  test('appears in no list', async () => {
    const victimValues = [
      ada.developer.developer.id,
      ada.application.id,
      ada.application.projectId,
      ada.application.clientId,
      ada.requestId,
      ada.webhookId,
      ada.tokenId,
      ada.phone,
    ]
    for (const operation of apiTester.operations) {
      if (operation.method !== 'GET' || operation.path.includes('{')) continue
      const { body } = await checker.callAsCaller(operation, { as: eve.developer.headers })
      for (const value of victimValues)
        expect({ of: operation.operationId, shows: body.includes(value) && value }).toMatchObject({
          shows: false,
        })
    }
  })

  test('is unchanged after all these requests', async () => {
    expect(before.length).toBeGreaterThan(10)
    expect(await readAll()).toEqual(before)
  })
})
