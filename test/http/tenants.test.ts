import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { absentIds, createEdge, type Belongings, type Edge } from '../helpers/edge.ts'
import { createTenantWalk, isForApplications, type TenantWalk } from '../helpers/tenant-walk.ts'

let edge: Edge
let walk: TenantWalk
let ada: Belongings
let eve: Belongings
/** Ada's own second application. */
let sibling: Record<string, string>

beforeAll(async () => {
  edge = await createEdge()
  walk = createTenantWalk(edge)
  ada = edge.owner
  eve = await edge.makeBelongings('+14155550101')
  sibling = (await edge.service.createApplication(ada.developer, { environment: 'test' })).headers
})
afterAll(() => edge.service.dispose())

test('there are operations to try', () => {
  expect(walk.forConsole.length).toBeGreaterThanOrEqual(16)
  expect(walk.forApplications.length).toBeGreaterThanOrEqual(4)
  expect(edge.operations.filter(isForApplications).length).toBeGreaterThanOrEqual(6)
})

describe('what belongs to another developer', () => {
  test('is answered as if it were not there, to every operation that names it', async () => {
    for (const operation of walk.forConsole) {
      const { foreign, absent } = await walk.compare(operation, eve.developer.headers, ada)
      expect({ of: operation.operationId, ...foreign }).toEqual({ of: operation.operationId, ...absent })
      expect(foreign.status).toBe(404)
    }
  })

  test('is the same to another application, of another developer or of the same one', async () => {
    for (const operation of walk.forApplications) {
      for (const as of [eve.application.headers, sibling]) {
        const { foreign, absent } = await walk.compare(operation, as, ada)
        expect({ of: operation.operationId, ...foreign }).toEqual({ of: operation.operationId, ...absent })
        expect(foreign.status).toBe(404)
      }
    }
  })

  test('is the same to a lookup with an API key', async () => {
    const [lookup] = edge.operations.filter(({ operationId }) => operationId === 'getUser')
    if (!lookup) throw new Error('The lookup is gone.')
    const { foreign, absent } = await walk.compare(lookup, { 'x-api-key': eve.application.apiKey }, ada)
    expect(foreign).toEqual(absent)
    expect(foreign.status).toBe(404)
    const own = await edge.judge(lookup, { as: { 'x-api-key': ada.application.apiKey } })
    expect([own.answer.status, own.faults]).toEqual([200, []])
  })

  test('filters a list down to nothing, as nobody’s does', async () => {
    const pairs: Array<[string, string, string]> = [
      ['projectId', ada.application.projectId, absentIds.projectId],
      ['appId', ada.application.id, absentIds.appId],
    ]
    let tried = 0
    for (const operation of edge.operations.filter(({ operationId }) => operationId !== 'streamLogs')) {
      for (const [name, foreignId, absentId] of pairs) {
        if (!operation.parameters?.some((parameter) => parameter.in === 'query' && parameter.name === name))
          continue
        tried += 1
        const as = eve.developer.headers
        const foreign = await walk.look(operation, { as, query: `?${name}=${foreignId}` })
        const absent = await walk.look(operation, { as, query: `?${name}=${absentId}` })
        expect({ of: operation.operationId, ...foreign }).toEqual({ of: operation.operationId, ...absent })
        expect(JSON.parse(foreign.body)).toMatchObject({ data: [] })
        const own = await walk.look(operation, { as: ada.developer.headers, query: `?${name}=${foreignId}` })
        expect(JSON.parse(own.body).data).not.toEqual([])
      }
    }
    expect(tried).toBeGreaterThanOrEqual(4)
  })

  test('is no place in a log to go on from', async () => {
    const [logs] = edge.operations.filter(({ operationId }) => operationId === 'listLogs')
    if (!logs) throw new Error('The log is gone.')
    const entries = JSON.parse((await walk.look(logs, { as: ada.developer.headers })).body).data
    const as = eve.developer.headers
    const foreign = await walk.look(logs, { as, query: `?after=${entries[0].id}` })
    expect(foreign).toEqual(await walk.look(logs, { as, query: `?after=${absentIds.eventId}` }))
    expect(foreign.status).toBe(400)
  })

  test('stands in no list', async () => {
    const hers = [
      ada.developer.developer.id,
      ada.application.id,
      ada.application.projectId,
      ada.application.clientId,
      ada.requestId,
      ada.webhookId,
      ada.phone,
    ]
    for (const operation of edge.operations) {
      if (operation.method !== 'GET' || operation.path.includes('{')) continue
      const { body } = await walk.look(operation, { as: eve.developer.headers })
      for (const value of hers)
        expect({ of: operation.operationId, shows: body.includes(value) && value }).toMatchObject({
          shows: false,
        })
    }
  })

  test('is as it was, after all of this', async () => {
    for (const operation of walk.namesInPath.filter(({ method }) => method === 'GET')) {
      const { answer, faults } = await edge.judge(operation)
      expect({ of: operation.operationId, status: answer.status, faults }).toEqual({
        of: operation.operationId,
        status: 200,
        faults: [],
      })
      expect(answer.text).not.toContain('"status":"canceled"')
    }
  })
})
