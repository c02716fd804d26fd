import { expect } from 'bun:test'
import { absentIds, type Belongings, type Edge, type EdgeRequest } from './edge.ts'
import type { Operation } from './openapi.ts'

export const isForConsole = ({ security }: Operation) => security.some((scheme) => 'console' in scheme)
export const isForApplications = ({ security }: Operation) => security.some((scheme) => 'apiKey' in scheme)

export type TenantWalk = ReturnType<typeof createTenantWalk>

/** Calls about what belongs to another tenant beside the same calls about what belongs to nobody. */
export function createTenantWalk(edge: Edge) {
  /** What a caller can tell apart: everything but the name of the call. */
  async function look(operation: Operation, request: EdgeRequest) {
    const { answer, faults } = await edge.judge(operation, request)
    expect(faults).toEqual([])
    const traceId = answer.headers.get('x-request-id') ?? ''
    const headers = [...answer.headers].filter(([name]) => name !== 'x-request-id')
    return { status: answer.status, headers, body: answer.text.replaceAll(traceId, 'req') }
  }

  /** The same call about somebody's thing and about nobody's. */
  async function compare(
    operation: Operation,
    as: Record<string, string>,
    of: Belongings,
    absent = absentIds,
  ) {
    const nothing: Belongings = {
      ...of,
      application: { ...of.application, id: absent.appId, projectId: absent.projectId },
      requestId: absent.requestId,
      webhookId: absent.webhookId,
      deliveryId: absent.deliveryId,
      phone: absent.phone,
    }
    const about = (belongings: Belongings) => ({
      as,
      path: edge.fillPath(operation, belongings),
      body: operation.body && JSON.stringify(edge.bodyOf(operation, belongings)),
    })
    return { foreign: await look(operation, about(of)), absent: await look(operation, about(nothing)) }
  }

  const namesInPath = edge.operations.filter(({ path }) => path.includes('{'))

  return {
    look,
    compare,
    namesInPath,
    /** Which kinds of caller an operation must be tried by, with what it names in its path or body. */
    forConsole: [
      ...namesInPath.filter(isForConsole),
      ...edge.operations.filter(({ operationId }) =>
        ['createApplication', 'createWebhook'].includes(operationId),
      ),
    ],
    forApplications: [
      ...edge.operations.filter((operation) => operation.body?.properties?.['requestId']),
      ...namesInPath.filter(
        (operation) => isForApplications(operation) && operation.path.startsWith('/v1/otp/'),
      ),
    ],
  }
}
